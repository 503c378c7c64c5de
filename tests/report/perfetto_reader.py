"""Reads Perfetto traces by the field numbers in tests/oracles/perfetto_fields.json: no code and no schema of
the program's. A field that is not there, or has another wire type, is an error."""

import json
import pathlib
import struct

ORACLE = json.loads((pathlib.Path(__file__).parent / "../oracles/perfetto_fields.json").read_text())
FIELDS = {
    message: {number: (name, kind) for name, (number, kind) in fields.items()}
    for message, fields in ORACLE["messages"].items()
}
REPEATED = {"packet", "debug_annotations", "categories", "flow_ids", "terminating_flow_ids"}
VARINTS = {"uint64", "uint32", "int64", "int32", "bool", "enum"}


def varint(data, at):
    value = shift = 0
    while True:
        byte = data[at]
        at += 1
        value |= (byte & 0x7F) << shift
        shift += 7
        if byte < 0x80:
            return value, at


def value_of(kind, wire, data, at):
    """The value at `at`, and what follows it."""
    if kind in VARINTS:
        assert wire == 0, (kind, wire)
        value, at = varint(data, at)
        return (value - (1 << 64) if kind in ("int64", "int32") and value >> 63 else value), at
    if kind in ("fixed64", "double"):
        assert wire == 1, (kind, wire)
        return struct.unpack_from("<Q" if kind == "fixed64" else "<d", data, at)[0], at + 8
    assert wire == 2, (kind, wire)
    length, at = varint(data, at)
    part = data[at : at + length]
    assert len(part) == length, "the file ends within a field"
    return (part.decode() if kind == "string" else message_of(kind, part)), at + length


def message_of(name, data):
    message, at = {}, 0
    while at < len(data):
        key, at = varint(data, at)
        field, kind = FIELDS[name][key >> 3]
        value, at = value_of(kind, key & 7, data, at)
        if field in REPEATED:
            message.setdefault(field, []).append(value)
        else:
            assert field not in message, field
            message[field] = value
    return message


def packets_of(path):
    return message_of("Trace", pathlib.Path(path).read_bytes())["packet"]
