"""Messages of JMS 1.1: head, properties, bodies and their form on the wire, for every messaging protocol that carries them."""

from protocols.jms.bodies import BODY_TYPES, ContentError, Scalar
from protocols.jms.conversions import ConversionError
from protocols.jms.message import TOPIC, JmsMessage, check_priority, fields_of, jms_message, message_of, topic_of
from protocols.jms.properties import KINDS, Properties, Typed, check_name, property_of
from protocols.jms.wire import FIXED_SIZE, LONGEST_HEAD, LONGEST_TOPIC, read_head, read_message, write_head

__all__ = [
    "BODY_TYPES",
    "FIXED_SIZE",
    "KINDS",
    "LONGEST_HEAD",
    "LONGEST_TOPIC",
    "TOPIC",
    "ContentError",
    "ConversionError",
    "JmsMessage",
    "Properties",
    "Scalar",
    "Typed",
    "check_name",
    "check_priority",
    "fields_of",
    "jms_message",
    "message_of",
    "property_of",
    "read_head",
    "read_message",
    "topic_of",
    "write_head",
]
