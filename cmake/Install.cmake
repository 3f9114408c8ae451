# Filled in by the install step: headers, libraries, attnclConfig.cmake, attncl.pc.
