# cmake --install: headers, both libraries, the command line, and the files by which CMake and pkg-config find them.
include(CMakePackageConfigHelpers)
set(attncl_cmake_dir ${CMAKE_INSTALL_LIBDIR}/cmake/attncl)

install(DIRECTORY include/attncl DESTINATION ${CMAKE_INSTALL_INCLUDEDIR} FILES_MATCHING PATTERN "*.h")
install(TARGETS attncl EXPORT attnclTargets LIBRARY DESTINATION ${CMAKE_INSTALL_LIBDIR})
install(TARGETS attncl_static EXPORT attnclStaticTargets ARCHIVE DESTINATION ${CMAKE_INSTALL_LIBDIR})
if(ATTNCL_BUILD_TOOLS)
    install(TARGETS attncl_tool RUNTIME DESTINATION ${CMAKE_INSTALL_BINDIR})
endif()

# Two sets: the shared library needs nothing of a program that links it, the static one all it is made of.
foreach(set attnclTargets attnclStaticTargets)
    install(EXPORT ${set} NAMESPACE attncl:: DESTINATION ${attncl_cmake_dir})
endforeach()
configure_package_config_file(cmake/attnclConfig.cmake.in ${PROJECT_BINARY_DIR}/attnclConfig.cmake
                              INSTALL_DESTINATION ${attncl_cmake_dir})
write_basic_package_version_file(${PROJECT_BINARY_DIR}/attnclConfigVersion.cmake COMPATIBILITY SameMinorVersion)
install(FILES ${PROJECT_BINARY_DIR}/attnclConfig.cmake ${PROJECT_BINARY_DIR}/attnclConfigVersion.cmake
        DESTINATION ${attncl_cmake_dir})

# The .pc file finds itself, so that the tree can be moved.
file(RELATIVE_PATH attncl_pc_prefix /${CMAKE_INSTALL_LIBDIR}/pkgconfig /)
configure_file(cmake/attncl.pc.in ${PROJECT_BINARY_DIR}/attncl.pc @ONLY)
install(FILES ${PROJECT_BINARY_DIR}/attncl.pc DESTINATION ${CMAKE_INSTALL_LIBDIR}/pkgconfig)
