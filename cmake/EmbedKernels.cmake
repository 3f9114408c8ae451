# SPDX-License-Identifier: MIT
# Every file of cl/ becomes bytes in the library: attncl__sources, declared in lib/device/program.h.
file(GLOB_RECURSE attncl_cl_files CONFIGURE_DEPENDS RELATIVE ${CMAKE_CURRENT_SOURCE_DIR}/cl
     ${CMAKE_CURRENT_SOURCE_DIR}/cl/*.cl ${CMAKE_CURRENT_SOURCE_DIR}/cl/*.clh)
set(attncl_cl_paths "")
foreach(file IN LISTS attncl_cl_files)
    list(APPEND attncl_cl_paths ${CMAKE_CURRENT_SOURCE_DIR}/cl/${file})
endforeach()
set(attncl_sources_c ${CMAKE_CURRENT_BINARY_DIR}/embedded_sources.c)
add_custom_command(
    OUTPUT ${attncl_sources_c}
    COMMAND ${CMAKE_COMMAND} -DROOT=${CMAKE_CURRENT_SOURCE_DIR}/cl "-DFILES=${attncl_cl_files}"
            -DOUT=${attncl_sources_c} -P ${CMAKE_CURRENT_SOURCE_DIR}/cmake/embed.cmake
    DEPENDS ${attncl_cl_paths} ${CMAKE_CURRENT_SOURCE_DIR}/cmake/embed.cmake
    COMMENT "Embedding kernel sources" VERBATIM)
