# SPDX-License-Identifier: MIT
"""What Intel's compiler says of the kernels in a binary: an ELF file with a section .ze_info, in YAML, of which these lines are read."""
import re
import struct


def sections(data):
    """{name: bytes} of a 64-bit ELF file."""
    table, = struct.unpack_from("<Q", data, 40)
    size, n, names_at = struct.unpack_from("<HHH", data, 58)
    headers = [struct.unpack_from("<IIQQQQ", data, table + i * size) for i in range(n)]

    def content(header):
        return data[header[4]:header[4] + header[5]]
    names = content(headers[names_at])
    return {names[h[0]:names.index(b"\0", h[0])].decode(): content(h) for h in headers}


def kernels_of_binary(data):
    """{kernel: figures}.  A thread's memory: `spill`, of registers, and `scratch`, of arrays that are not in registers (bytes of a
    work-item or of a thread)."""
    text = sections(data)[".ze_info"].decode().split("kernels_misc_info:")[0]
    found = {}
    for part in re.split(r"\n  - name: +", text)[1:]:
        def number(key):
            hit = re.search(rf"\n      {key}: +(\d+)", part)
            return int(hit[1]) if hit else 0
        memory = re.findall(r"- type: +\w+\s+usage: +(\w+)\s+size: +(\d+)", part)
        found[part.split("\n")[0].strip()] = {
            "simd": number("simd_size"), "grfs": number("grf_count"), "local": number("slm_size"), "barriers": number("barrier_count"),
            "required_simd": number("intel_reqd_sub_group_size"),
            "spill": sum(int(size) for usage, size in memory if usage == "spill_fill_space"),
            "scratch": sum(int(size) for usage, size in memory if usage != "spill_fill_space")}
    return found
