# SPDX-License-Identifier: MIT
# Warnings, hardening and sanitizers: attncl_warnings(target) for every target of ours.
include(CheckCCompilerFlag)
include(CheckCSourceCompiles)
include(CheckLinkerFlag)

check_c_compiler_flag(-ffile-prefix-map=/a=/b attncl_maps_prefixes)
check_c_compiler_flag(-fcf-protection=full attncl_has_cf_protection)
# The note of shadow stacks, which linkers leave out where the C library's own start files lack it.  The note of
# indirect branches is left to the linker: those files' functions have no marks to branch to.
if(attncl_has_cf_protection)
    check_linker_flag(C -Wl,-z,shstk attncl_marks_shadow_stack)
endif()
# Level 3 checks sizes known at run time; a C library that lacks it for this compiler warns.
set(CMAKE_REQUIRED_FLAGS "-O2 -Werror -U_FORTIFY_SOURCE -D_FORTIFY_SOURCE=3")
check_c_source_compiles("#include <string.h>\nint main(void) { return 0; }" attncl_has_fortify_3)
unset(CMAKE_REQUIRED_FLAGS)
set(attncl_fortify 2)
if(attncl_has_fortify_3)
    set(attncl_fortify 3)
endif()

# Without optimisation the C library cannot check sizes, and warns.
function(attncl_harden target)
    set(optimised $<OR:$<CONFIG:Release>,$<CONFIG:RelWithDebInfo>,$<CONFIG:MinSizeRel>>)
    target_compile_options(${target} PRIVATE -fstack-protector-strong -fstack-clash-protection
        $<${optimised}:-U_FORTIFY_SOURCE> $<${optimised}:-D_FORTIFY_SOURCE=${attncl_fortify}>
        $<$<BOOL:${attncl_has_cf_protection}>:-fcf-protection=full>)
    target_link_options(${target} PRIVATE -Wl,-z,relro,-z,now,-z,noexecstack
        $<$<BOOL:${attncl_marks_shadow_stack}>:-Wl,-z,shstk>)
endfunction()

function(attncl_warnings target)
    target_compile_options(${target} PRIVATE
        -Wall -Wextra -Wformat=2 -Wshadow -Wstrict-prototypes -Wmissing-prototypes -Wpointer-arith
        -Wimplicit-fallthrough -Wundef -Werror=implicit -Werror=incompatible-pointer-types
        -Werror=int-conversion -Werror=format-security
        -fno-strict-aliasing -fexceptions)
    if(attncl_maps_prefixes) # the same binary from every directory; of two that match gcc takes the last
        target_compile_options(${target} PRIVATE -ffile-prefix-map=${PROJECT_SOURCE_DIR}=.
                               -ffile-prefix-map=${PROJECT_BINARY_DIR}=build)
    endif()
    if(ATTNCL_SANITIZE)
        set(sanitizers address,undefined)
        if(ATTNCL_SANITIZE STREQUAL thread)
            set(sanitizers thread)
        endif()
        # Lines in stacks need no more than -g1; optimising takes longer than it gains the tests.
        target_compile_options(${target} PRIVATE -fsanitize=${sanitizers} -fno-omit-frame-pointer
                               -fno-sanitize-recover=undefined -O0 -g1)
        target_link_options(${target} PRIVATE -fsanitize=${sanitizers})
    elseif(NOT CMAKE_BUILD_TYPE STREQUAL "Debug")
        attncl_harden(${target})
    endif()
endfunction()
