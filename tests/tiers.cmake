# SPDX-License-Identifier: MIT
# The tier of each test, as its label: "default", what `tests/run` runs in five minutes from a clean clone, "ci", what
# .ci/run adds, "full", the rest.  A test leaves a tier only while every mutant of mutants.tsv still dies in what .ci/run
# runs.  The last row whose pattern is the whole name decides; none: full.
set(attncl_tiers
    "ci      (autodiff|compile|exec|gemm|launch|layer|model|op|train|tune)\\..*"
    "ci      faults\\.(queues|runs|tune)"
    "ci      accuracy\\.(functions|rows)"
    "ci      personas\\.(limits|two_devices)"
    "ci      tools\\.(architectures|convert|language|manual|pictures|report|train|train_resume)"
    "ci      (bench\\.small|python\\.api)"
    "ci      style\\..*"
    "full    model\\.(alloc|decoder_(crop|sample|state)|describe|dropout(_golden)?|initial|keys|parameters|refuse|status|steady|tolerate)@gpu"
    "full    exec\\.queues@gpu"
    "full    op\\..*\\.groups_of_.*"
    "full    (gemm\\.clblast|launch\\.shuffle)"
    "default (base|device|graph|io|store|tokenizer)\\..*"
    "default (autodiff|compile|exec|layer)\\.[a-z_]*"
    "default (launch\\.launch|model\\.golden|op\\.registry)"
    "default (op\\.[a-z_]*|gemm\\.gemm)@(cpu|gpu)"
    "default (fuzz\\.graphs|faults\\.(heap|queries|bind))"
    "default tools\\.(failures|mistakes)"
    "default style\\.(layers|exports|object_cycles|headers|structure)"
    "ci      op\\.fused_[a-z_]*(@cpu|@gpu)?"
    "ci      compile\\.probes")

function(attncl_set_tiers)
    get_property(names DIRECTORY PROPERTY TESTS)
    foreach(name IN LISTS names)
        set(label full)
        foreach(row IN LISTS attncl_tiers)
            string(REGEX MATCH "^([a-z]+) +(.*)$" row "${row}")
            set(tier ${CMAKE_MATCH_1})
            if(name MATCHES "^${CMAKE_MATCH_2}$")
                set(label ${tier})
            endif()
        endforeach()
        set_property(TEST ${name} PROPERTY LABELS ${label})
    endforeach()
endfunction()
