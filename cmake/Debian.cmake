# SPDX-License-Identifier: MIT
# Debian packages, by `cpack` in the build directory: libattncl0.1, libattncl-dev, attncl.  An archive by `cpack -G TGZ`.
set(CPACK_GENERATOR DEB)
set(CPACK_PACKAGE_CONTACT "libattncl authors <noreply@libattncl.invalid>")
set(CPACK_PACKAGE_DESCRIPTION_SUMMARY "${PROJECT_DESCRIPTION}")
set(CPACK_PACKAGING_INSTALL_PREFIX /usr)
set(CPACK_STRIP_FILES ON)
set(CPACK_DEB_COMPONENT_INSTALL ON)
set(CPACK_COMPONENTS_GROUPING IGNORE)
set(CPACK_COMPONENTS_ALL library development tool)
set(CPACK_DEBIAN_FILE_NAME DEB-DEFAULT)
set(CPACK_DEBIAN_PACKAGE_SHLIBDEPS ON)
set(CPACK_DEBIAN_PACKAGE_SHLIBDEPS_PRIVATE_DIRS ${PROJECT_BINARY_DIR})

# What changed is in CHANGELOG.md; Debian's changelog names the version.
set(debian ${PROJECT_BINARY_DIR}/debian)
file(WRITE ${debian}/changelog "attncl (${PROJECT_VERSION}) unstable; urgency=medium

  * See CHANGELOG.md.

 -- ${CPACK_PACKAGE_CONTACT}  Sun, 22 Nov 2026 12:00:00 +0000
")
execute_process(COMMAND gzip -9nc ${debian}/changelog OUTPUT_FILE ${debian}/changelog.gz)
# Debian wants a trigger of ldconfig; CPack adds scripts that call it too.
file(WRITE ${debian}/triggers "activate-noawait ldconfig\n")
file(WRITE ${debian}/shlibs "libattncl ${attncl_soversion} libattncl${attncl_soversion} (>= ${PROJECT_VERSION})\n")
set(CPACK_DEBIAN_LIBRARY_PACKAGE_CONTROL_EXTRA ${debian}/triggers ${debian}/shlibs)
set(CPACK_DEBIAN_MPI_PACKAGE_CONTROL_EXTRA ${debian}/triggers)

set(library libattncl${attncl_soversion})
# attncl_package(COMPONENT NAME SECTION DEPENDS RECOMMENDS DESCRIPTION)
macro(attncl_package component name section depends recommends description)
    string(TOUPPER ${component} upper)
    set(CPACK_DEBIAN_${upper}_PACKAGE_NAME ${name})
    set(CPACK_DEBIAN_${upper}_PACKAGE_SECTION ${section})
    set(CPACK_DEBIAN_${upper}_PACKAGE_DEPENDS "${depends}")
    set(CPACK_DEBIAN_${upper}_PACKAGE_RECOMMENDS "${recommends}")
    set(CPACK_COMPONENT_${upper}_DESCRIPTION "${description}")
    # Only in packages, not with `cmake --install`.
    install(FILES LICENSE DESTINATION share/doc/${name} RENAME copyright COMPONENT ${component} EXCLUDE_FROM_ALL)
    install(FILES ${debian}/changelog.gz DESTINATION share/doc/${name} COMPONENT ${component} EXCLUDE_FROM_ALL)
endmacro()
attncl_package(library ${library} libs "" "pocl-opencl-icd | opencl-icd"
    "The shared library.  It needs an OpenCL driver: a GPU's, or PoCL for CPUs.")
attncl_package(development libattncl-dev libdevel "${library} (= ${PROJECT_VERSION}), ocl-icd-opencl-dev | opencl-dev"
    "libclblast-dev, libjansson-dev, libpcre2-dev, libssl-dev, libutf8proc-dev"
    "Headers, the static library, documents, examples.
Linking statically needs the recommended packages.")
attncl_package(tool attncl science "${library} (= ${PROJECT_VERSION})" "gnuplot-nox | gnuplot"
    "The command line: trains, runs, evaluates and samples models from files.
Pictures need gnuplot.")
if(attncl_build_mpi)
    list(APPEND CPACK_COMPONENTS_ALL mpi)
    attncl_package(mpi libattncl-mpi libs "${library} (= ${PROJECT_VERSION})" ""
        "The plugin for several processes, for the MPI that it was built with.")
endif()

# `cpack -G TGZ`: a tree that runs where it is unpacked, with attncl-bench and the libraries that a machine with an OpenCL
# driver may lack.  The loader is the machine's own.
set(CPACK_PROJECT_CONFIG_FILE ${PROJECT_BINARY_DIR}/archive.cmake)
file(WRITE ${CPACK_PROJECT_CONFIG_FILE} "if(CPACK_GENERATOR STREQUAL TGZ)
    set(CPACK_PACKAGING_INSTALL_PREFIX /)
    set(CPACK_INSTALL_CMAKE_PROJECTS \"${PROJECT_BINARY_DIR};attncl;ALL;/;${PROJECT_BINARY_DIR};attncl;archive;/\")
endif()\n")
if(TARGET attncl-bench)
    set_target_properties(attncl-bench PROPERTIES INSTALL_RPATH "$ORIGIN/${lib_from_bin}")
    install(TARGETS attncl-bench RUNTIME DESTINATION ${CMAKE_INSTALL_BINDIR} COMPONENT archive EXCLUDE_FROM_ALL)
endif()
install(CODE "file(GET_RUNTIME_DEPENDENCIES LIBRARIES $<TARGET_FILE:attncl> RESOLVED_DEPENDENCIES_VAR found
        POST_INCLUDE_REGEXES \"/lib(clblast|jansson|pcre2-8|utf8proc|crypto)[.]so\" POST_EXCLUDE_REGEXES \".\")
    file(INSTALL DESTINATION \"\${CMAKE_INSTALL_PREFIX}/${CMAKE_INSTALL_LIBDIR}\" TYPE SHARED_LIBRARY FOLLOW_SYMLINK_CHAIN FILES \${found})"
    COMPONENT archive EXCLUDE_FROM_ALL)
include(CPack)
