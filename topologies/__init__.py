"""Networks as data: graphs with validated attributes, generators, loss channels, multicast trees and addresses."""
