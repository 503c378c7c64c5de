# `cmake --install`: the library with its headers, the program, what ships in platforms/, workloads/ and
# scenarios/, and the package `plimsoll`, so that find_package(plimsoll) gives plimsoll::plimsoll.
include(CMakePackageConfigHelpers)
set(package_dir ${CMAKE_INSTALL_LIBDIR}/cmake/plimsoll)
set(share_dir ${CMAKE_INSTALL_DATADIR}/plimsoll)

install(TARGETS plimsoll EXPORT plimsoll-targets)
if(TARGET plimsoll_program)
  install(TARGETS plimsoll_program)
endif()
install(DIRECTORY ${PROJECT_SOURCE_DIR}/sim/ DESTINATION ${CMAKE_INSTALL_INCLUDEDIR}/plimsoll
        FILES_MATCHING PATTERN "*.hpp")
foreach(folder platforms workloads scenarios)
  install(DIRECTORY ${PROJECT_SOURCE_DIR}/${folder} DESTINATION ${share_dir})
endforeach()

install(DIRECTORY ${PROJECT_SOURCE_DIR}/tools/slurm DESTINATION ${share_dir} USE_SOURCE_PERMISSIONS)

configure_package_config_file(${CMAKE_CURRENT_LIST_DIR}/plimsollConfig.cmake.in
  ${PROJECT_BINARY_DIR}/plimsollConfig.cmake
  INSTALL_DESTINATION ${package_dir} PATH_VARS share_dir)
write_basic_package_version_file(${PROJECT_BINARY_DIR}/plimsollConfigVersion.cmake
  COMPATIBILITY SameMinorVersion)
install(FILES ${PROJECT_BINARY_DIR}/plimsollConfig.cmake
        ${PROJECT_BINARY_DIR}/plimsollConfigVersion.cmake DESTINATION ${package_dir})
install(EXPORT plimsoll-targets NAMESPACE plimsoll:: DESTINATION ${package_dir})
