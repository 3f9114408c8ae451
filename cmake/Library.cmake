# SPDX-License-Identifier: MIT
# The library: one set of objects, a shared library with the public symbols and a static one.  Every file below lib/ is
# a source; lib/op/op_list.def names the ops, lib/model/arch_list.def the architectures.
file(GLOB_RECURSE lib_sources CONFIGURE_DEPENDS lib/*.c)

# A library of its own, below.
list(FILTER lib_sources EXCLUDE REGEX "/lib/mpi/")

# "family/file" of each op, from its line in op_list.def.
set_property(DIRECTORY APPEND PROPERTY CMAKE_CONFIGURE_DEPENDS
             ${CMAKE_CURRENT_SOURCE_DIR}/lib/op/op_list.def)
file(STRINGS lib/op/op_list.def rows REGEX "^OP\\(")
set(attncl_ops "")
foreach(row IN LISTS rows)
    string(REGEX REPLACE "^OP\\(([a-z0-9_]+/[a-z0-9_]+),.*" "\\1" op "${row}")
    list(APPEND attncl_ops ${op})
endforeach()
list(REMOVE_DUPLICATES attncl_ops)
foreach(op IN LISTS attncl_ops)
    if(NOT EXISTS ${CMAKE_CURRENT_SOURCE_DIR}/lib/op/${op}.c)
        message(FATAL_ERROR "lib/op/op_list.def names ${op}, but there is no lib/op/${op}.c")
    endif()
endforeach()

# Sizes and offsets from untrusted files pass through these two: no silent conversion.
file(GLOB checked_sources lib/base/*.c lib/io/*.c lib/tokenizer/*.c)
set_source_files_properties(${checked_sources} PROPERTIES COMPILE_OPTIONS "-Wconversion;-Wsign-conversion")

add_library(attncl_objects OBJECT ${lib_sources} ${attncl_sources_c})
set_target_properties(attncl_objects PROPERTIES POSITION_INDEPENDENT_CODE ON C_VISIBILITY_PRESET hidden)
target_include_directories(attncl_objects PUBLIC include PRIVATE lib)
target_compile_definitions(attncl_objects PRIVATE ATTNCL_BUILDING)
attncl_warnings(attncl_objects)
set(attncl_links OpenCL::OpenCL clblast PkgConfig::JANSSON PkgConfig::PCRE2 PkgConfig::UTF8PROC OpenSSL::Crypto Threads::Threads m ${CMAKE_DL_LIBS})
target_link_libraries(attncl_objects PUBLIC ${attncl_links})

add_library(attncl SHARED)
add_library(attncl_static STATIC)
foreach(target attncl attncl_static)
    target_sources(${target} PRIVATE $<TARGET_OBJECTS:attncl_objects>)
    target_include_directories(${target} PUBLIC $<BUILD_INTERFACE:${CMAKE_CURRENT_SOURCE_DIR}/include>
                               $<INSTALL_INTERFACE:${CMAKE_INSTALL_INCLUDEDIR}>)
    attncl_warnings(${target})
    set_target_properties(${target} PROPERTIES OUTPUT_NAME attncl LINKER_LANGUAGE C)
endforeach()
# The names that the installed library has, so that a project can take either.
add_library(attncl::attncl ALIAS attncl)
add_library(attncl::attncl_static ALIAS attncl_static)
target_link_libraries(attncl PRIVATE ${attncl_links} INTERFACE $<BUILD_INTERFACE:OpenCL::OpenCL>) # attncl/opencl.h
target_link_libraries(attncl_static PUBLIC ${attncl_links})
target_link_options(attncl PRIVATE -Wl,--version-script=${CMAKE_CURRENT_SOURCE_DIR}/cmake/attncl.map -Wl,--as-needed)
file(STRINGS include/attncl/version.h version_line REGEX "ATTNCL_VERSION_STRING")
if(NOT version_line MATCHES "\"${PROJECT_VERSION}\"")
    message(FATAL_ERROR "CMakeLists.txt says version ${PROJECT_VERSION}, include/attncl/version.h says ${version_line}")
endif()
# Before 1.0 a minor version may change the interface.
set(attncl_soversion ${PROJECT_VERSION_MAJOR})
if(PROJECT_VERSION_MAJOR EQUAL 0)
    set(attncl_soversion 0.${PROJECT_VERSION_MINOR})
endif()
# $ORIGIN: in an archive the libraries that it needs lie beside it.
set_target_properties(attncl PROPERTIES VERSION ${PROJECT_VERSION} SOVERSION ${attncl_soversion} INSTALL_RPATH "$ORIGIN"
                      LINK_DEPENDS ${CMAKE_CURRENT_SOURCE_DIR}/cmake/attncl.map)

# What lib/train/ranks.c loads where a launcher started several processes: compiled for the one MPI that CMake found.
if(attncl_build_mpi)
    add_library(attncl_mpi MODULE lib/mpi/plugin.c)
    set_target_properties(attncl_mpi PROPERTIES C_VISIBILITY_PRESET hidden)
    target_include_directories(attncl_mpi PRIVATE lib)
    target_link_libraries(attncl_mpi PRIVATE MPI::MPI_C)
    target_link_options(attncl_mpi PRIVATE -Wl,-soname,libattncl_mpi.so)
    attncl_warnings(attncl_mpi)
endif()

# Tests and benchmarks reach inside: static, all symbols.
add_library(attncl_internal INTERFACE)
target_link_libraries(attncl_internal INTERFACE attncl_static)
target_include_directories(attncl_internal INTERFACE ${CMAKE_CURRENT_SOURCE_DIR}/lib)

# Link options with which tests/support/launch_mock.c stands in for the functions of lib/launch, and for clFlush and CLBlast.
set(attncl_wrap_launch -Wl,--wrap=clFlush -Wl,--wrap=CLBlastSgemmWithTempBuffer -Wl,--wrap=CLBlastSgemmStridedBatched
                       -Wl,--wrap=attncl__launch -Wl,--wrap=attncl__launch_part -Wl,--wrap=attncl__kernel_fits
                       -Wl,--wrap=attncl__kernel_query_limits -Wl,--undefined=__wrap_attncl__launch)
