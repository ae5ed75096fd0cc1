# The install rules and the package that find_package(Lockstep) and pkg-config read.
include(CMakePackageConfigHelpers)

get_property(libraries GLOBAL PROPERTY LOCKSTEP_LIBRARIES)
set(package_folder ${CMAKE_INSTALL_LIBDIR}/cmake/Lockstep)

install(TARGETS ${libraries} EXPORT LockstepTargets
  ARCHIVE DESTINATION ${CMAKE_INSTALL_LIBDIR}
  FILE_SET HEADERS DESTINATION ${CMAKE_INSTALL_INCLUDEDIR})
install(EXPORT LockstepTargets NAMESPACE Lockstep:: DESTINATION ${package_folder})

# A second set, which is read only for who asks for one of its libraries as a component.
get_property(torch_libraries GLOBAL PROPERTY LOCKSTEP_TORCH_LIBRARIES)
list(TRANSFORM torch_libraries REPLACE "^lockstep_" "" OUTPUT_VARIABLE LOCKSTEP_TORCH_COMPONENTS)
list(TRANSFORM libraries REPLACE "^lockstep_" "" OUTPUT_VARIABLE LOCKSTEP_COMPONENTS)
if(torch_libraries)
  install(TARGETS ${torch_libraries} EXPORT LockstepTorchTargets
    ARCHIVE DESTINATION ${CMAKE_INSTALL_LIBDIR}
    FILE_SET HEADERS DESTINATION ${CMAKE_INSTALL_INCLUDEDIR})
  install(EXPORT LockstepTorchTargets NAMESPACE Lockstep:: DESTINATION ${package_folder})
endif()

set(LOCKSTEP_PACKAGE_NEEDS_MPI OFF)
if(MPI_CXX_FOUND)
  set(LOCKSTEP_PACKAGE_NEEDS_MPI ON)
endif()
configure_package_config_file(${CMAKE_CURRENT_LIST_DIR}/LockstepConfig.cmake.in
  ${PROJECT_BINARY_DIR}/LockstepConfig.cmake INSTALL_DESTINATION ${package_folder})
write_basic_package_version_file(${PROJECT_BINARY_DIR}/LockstepConfigVersion.cmake COMPATIBILITY SameMajorVersion)
install(FILES ${PROJECT_BINARY_DIR}/LockstepConfig.cmake ${PROJECT_BINARY_DIR}/LockstepConfigVersion.cmake
  DESTINATION ${package_folder})

# A static linker reads from left to right, so whoever uses comes before what is used: highest tier first.
list(TRANSFORM libraries PREPEND "-l" OUTPUT_VARIABLE pc_libraries)
list(REVERSE pc_libraries)
list(JOIN pc_libraries " " LOCKSTEP_PC_LIBRARIES)
set(LOCKSTEP_PC_REQUIRES "fmt spdlog libssl libcrypto libhwy libpcre2-8 libutf8proc zlib")
file(RELATIVE_PATH LOCKSTEP_PC_PREFIX /${CMAKE_INSTALL_LIBDIR}/pkgconfig /)
if(MPI_CXX_FOUND)
  string(APPEND LOCKSTEP_PC_REQUIRES " ompi-c")
endif()
configure_file(${CMAKE_CURRENT_LIST_DIR}/lockstep.pc.in ${PROJECT_BINARY_DIR}/lockstep.pc @ONLY)
install(FILES ${PROJECT_BINARY_DIR}/lockstep.pc DESTINATION ${CMAKE_INSTALL_LIBDIR}/pkgconfig)
