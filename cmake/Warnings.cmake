# SPDX-License-Identifier: MIT
# Warnings, hardening and sanitizers: attncl_warnings(target) for every target of ours.
function(attncl_warnings target)
    target_compile_options(${target} PRIVATE
        -Wall -Wextra -Wformat=2 -Wshadow -Wstrict-prototypes -Wmissing-prototypes -Wpointer-arith
        -Wimplicit-fallthrough -Wundef -Werror=implicit -Werror=incompatible-pointer-types
        -Werror=int-conversion -Werror=format-security
        -fno-strict-aliasing -fexceptions)
    if(ATTNCL_SANITIZE)
        target_compile_options(${target} PRIVATE -fsanitize=address,undefined -fno-omit-frame-pointer
                               -fno-sanitize-recover=undefined)
        target_link_options(${target} PRIVATE -fsanitize=address,undefined)
    elseif(NOT CMAKE_BUILD_TYPE STREQUAL "Debug")
        target_compile_options(${target} PRIVATE -fstack-protector-strong -fstack-clash-protection)
    endif()
endfunction()
