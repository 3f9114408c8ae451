# SPDX-License-Identifier: MIT
# cmake --install: headers, both libraries, the command line, documents, and the files by which CMake and pkg-config find them.
# Four components, each a Debian package (cmake/Debian.cmake): library, development, tool, and where MPI is found, mpi.
include(CMakePackageConfigHelpers)
set(attncl_cmake_dir ${CMAKE_INSTALL_LIBDIR}/cmake/attncl)

install(DIRECTORY include/attncl DESTINATION ${CMAKE_INSTALL_INCLUDEDIR} COMPONENT development FILES_MATCHING PATTERN "*.h")
install(TARGETS attncl EXPORT attnclTargets
        LIBRARY DESTINATION ${CMAKE_INSTALL_LIBDIR} COMPONENT library NAMELINK_COMPONENT development)
install(TARGETS attncl_static EXPORT attnclStaticTargets ARCHIVE DESTINATION ${CMAKE_INSTALL_LIBDIR} COMPONENT development)
if(attncl_build_mpi)
    install(TARGETS attncl_mpi LIBRARY DESTINATION ${CMAKE_INSTALL_LIBDIR} COMPONENT mpi)
endif()
if(ATTNCL_BUILD_TOOLS)
    install(TARGETS attncl_tool RUNTIME DESTINATION ${CMAKE_INSTALL_BINDIR} COMPONENT tool)
    if(TARGET attncl_manual)
        # zsh on Debian looks for a package's completions elsewhere than zsh as its makers install it.
        set(zsh site-functions)
        if(CMAKE_INSTALL_PREFIX STREQUAL "/usr" AND EXISTS /etc/debian_version)
            set(zsh vendor-completions)
        endif()
        install(FILES ${attncl_manual}/attncl.1.gz DESTINATION ${CMAKE_INSTALL_MANDIR}/man1 COMPONENT tool)
        install(FILES ${attncl_manual}/attncl.bash DESTINATION ${CMAKE_INSTALL_DATADIR}/bash-completion/completions RENAME attncl COMPONENT tool)
        install(FILES ${attncl_manual}/attncl.zsh DESTINATION ${CMAKE_INSTALL_DATADIR}/zsh/${zsh} RENAME _attncl COMPONENT tool)
        install(FILES ${attncl_manual}/attncl.fish DESTINATION ${CMAKE_INSTALL_DATADIR}/fish/vendor_completions.d COMPONENT tool)
    endif()
endif()
install(FILES LICENSE README.md CHANGELOG.md DESTINATION ${CMAKE_INSTALL_DOCDIR} COMPONENT library)
install(DIRECTORY docs examples DESTINATION ${CMAKE_INSTALL_DOCDIR} COMPONENT development
        PATTERN dev EXCLUDE PATTERN Doxyfile EXCLUDE)
install(FILES tests/support/attncl.supp DESTINATION ${CMAKE_INSTALL_DATADIR}/attncl COMPONENT development)

# Two sets: the shared library needs nothing of a program that links it, the static one all it is made of.
foreach(set attnclTargets attnclStaticTargets)
    install(EXPORT ${set} NAMESPACE attncl:: DESTINATION ${attncl_cmake_dir} COMPONENT development)
endforeach()
configure_package_config_file(cmake/attnclConfig.cmake.in ${PROJECT_BINARY_DIR}/attnclConfig.cmake
                              INSTALL_DESTINATION ${attncl_cmake_dir})
write_basic_package_version_file(${PROJECT_BINARY_DIR}/attnclConfigVersion.cmake COMPATIBILITY SameMinorVersion)
install(FILES ${PROJECT_BINARY_DIR}/attnclConfig.cmake ${PROJECT_BINARY_DIR}/attnclConfigVersion.cmake
        DESTINATION ${attncl_cmake_dir} COMPONENT development)

# The .pc file finds itself, so that the tree can be moved.
file(RELATIVE_PATH attncl_pc_prefix /${CMAKE_INSTALL_LIBDIR}/pkgconfig /)
configure_file(cmake/attncl.pc.in ${PROJECT_BINARY_DIR}/attncl.pc @ONLY)
install(FILES ${PROJECT_BINARY_DIR}/attncl.pc DESTINATION ${CMAKE_INSTALL_LIBDIR}/pkgconfig COMPONENT development)
