# plimsoll_add_proto(FLOOR PATH) compiles PATH.proto into the library, for use by FLOOR, in plimsoll_FLOOR_proto. PATH is the file's
# name as seen from sim/ ("plan/plan"): protoc makes the include "plan/plan.pb.h" of it. The code is private, compiled once, as it
# comes. Called by the topmost folder: Ninja begins in the order of folders, and in each with what
# is not generated.
function(plimsoll_add_proto floor path)
  get_filename_component(name ${path} NAME)
  set(generated ${PROJECT_BINARY_DIR}/sim/${floor}/generated)
  set(code ${generated}/${path}.pb.cc ${generated}/${path}.pb.h)
  file(MAKE_DIRECTORY ${generated})
  add_custom_command(
    OUTPUT ${code}
    COMMAND protobuf::protoc --proto_path=${PROJECT_SOURCE_DIR}/sim --cpp_out=${generated}
            ${PROJECT_SOURCE_DIR}/sim/${path}.proto
    DEPENDS ${PROJECT_SOURCE_DIR}/sim/${path}.proto protobuf::protoc
    COMMENT "Generating ${name}.pb.cc"
    VERBATIM)
  set(objects plimsoll_${floor}_proto)
  add_library(${objects} OBJECT ${code})
  # The library of Protocol Buffers does most of the work; -Og halves the time that its generated code takes to compile.
  target_compile_options(${objects} PRIVATE -w $<$<CONFIG:Release>:-Og>)
  target_include_directories(${objects} SYSTEM PUBLIC ${generated})
  target_link_libraries(${objects} PRIVATE plimsoll_options protobuf::libprotobuf)
  set_target_properties(${objects} PROPERTIES POSITION_INDEPENDENT_CODE $<BOOL:${BUILD_SHARED_LIBS}>)
endfunction()
