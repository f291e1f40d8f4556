"""What tests of protocols stand on: fake ports, a fake host, a scripted link, content, and what this machine has."""
