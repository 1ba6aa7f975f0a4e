#!/usr/bin/python3
# SPDX-License-Identifier: BSD-2-Clause
"""Copies a BPF object without the line information of its .BTF.ext section.

The kernel keeps for each loaded program what its BTF and its line information
have, and the BTF has the text of each line: most of it here. One record is
left for each function, because the kernel demands it.

usage: strip_lines.py IN OUT
"""
import struct
import sys


def section(elf, name):
    """Return the offset of a section in a little- or big-endian ELF64 file."""
    end = "<" if elf[5] == 1 else ">"
    table, = struct.unpack_from(end + "Q", elf, 40)
    size, count, names = struct.unpack_from(end + "HHH", elf, 58)
    headers = [struct.unpack_from(end + "IIQQQQ", elf, table + i * size)
               for i in range(count)]
    for header in headers:
        at = headers[names][4] + header[0]
        if elf[at:elf.index(b"\0", at)] == name:
            return end, header[4]
    sys.exit(f"no section {name.decode()}")


def blocks(end, data):
    """Yield (name of the code's section, records) of func_info or line_info."""
    size, = struct.unpack_from(end + "I", data)
    at = 4
    while at < len(data):
        name, count = struct.unpack_from(end + "II", data, at)
        at += 8
        yield name, [data[at + i * size:at + (i + 1) * size]
                     for i in range(count)]
        at += count * size


def first_lines(end, functions, lines):
    """Return line_info with the records that are at the beginning of a function."""
    def offset(record):
        return struct.unpack_from(end + "I", record)[0]

    begins = {name: {offset(r) for r in records}
              for name, records in blocks(end, functions)}
    kept = lines[:4]
    for name, records in blocks(end, lines):
        first = [r for r in records if offset(r) in begins[name]]
        if len(first) != len(begins[name]):
            sys.exit("a function has no line at its beginning, or several")
        kept += struct.pack(end + "II", name, len(first)) + b"".join(first)
    return kept


def main(source, target):
    with open(source, "rb") as f:
        elf = bytearray(f.read())
    end, at = section(elf, b".BTF.ext")
    length, = struct.unpack_from(end + "I", elf, at + 4)
    parts = [bytes(elf[at + length + offset:at + length + offset + size])
             for offset, size in (struct.unpack_from(end + "II", elf, at + 8),
                                  struct.unpack_from(end + "II", elf, at + 16))]
    kept = first_lines(end, *parts)
    begin = at + length + struct.unpack_from(end + "I", elf, at + 16)[0]
    elf[begin:begin + len(kept)] = kept
    struct.pack_into(end + "I", elf, at + 20, len(kept))
    with open(target, "wb") as f:
        f.write(elf)


if __name__ == "__main__":
    main(*sys.argv[1:])
