# SPDX-License-Identifier: Apache-2.0
"""tools/check_layers.py accepts a good tree and names what is wrong with bad ones."""

import unittest

from trees import run_on as run_script_on


def run_on(files):
    return run_script_on("check_layers.py", files)


class CheckLayers(unittest.TestCase):
    def refused(self, files, *phrases):
        code, output = run_on(files)
        self.assertEqual(code, 1, output)
        for phrase in phrases:
            self.assertIn(phrase, output)

    def test_own_folder_and_lower_tiers_are_accepted(self):
        code, output = run_on(
            {
                "lockstep/comm/a.cpp": '#include "lockstep/comm/a.h"\n#include "lockstep/base/b.h"\n#include <vector>\n',
                "lockstep/comm/CMakeLists.txt": "lockstep_library(comm PUBLIC Lockstep::base)\n",
                "lockstep/nn/a.cpp": '#include <torch/torch.h>\n#include "lockstep/comm/a.h"\n',
            }
        )
        self.assertEqual((code, output), (0, ""))

    def test_upward_include_is_refused_with_its_line(self):
        self.refused(
            {"lockstep/base/a.h": '#pragma once\n\n#  include "lockstep/comm/communicator.h"\n'},
            "lockstep/base/a.h:3:",
            "base (tier 0) goes up to comm (tier 4)",
        )

    def test_sideways_include_is_refused(self):
        self.refused(
            {"lockstep/kernels/deep/a.cpp": '#include "lockstep/transport/channel.h"\n'},
            "lockstep/kernels/deep/a.cpp:1:",
            "kernels (tier 2) goes sideways to transport (tier 2)",
        )

    def test_angle_brackets_do_not_hide_an_include(self):
        self.refused({"lockstep/base/a.h": "#include <lockstep/mesh/range.h>\n"}, "goes up to mesh")

    def test_upward_link_is_refused(self):
        self.refused(
            {"lockstep/mesh/CMakeLists.txt": "lockstep_library(mesh\n  PUBLIC Lockstep::comm)\n"},
            "lockstep/mesh/CMakeLists.txt:2:",
        )

    def test_relative_include_is_refused(self):
        self.refused({"lockstep/base/a.cpp": '#include "b.h"\n'}, "must be written from the root")

    def test_libtorch_is_refused_below_its_line(self):
        for header in ("torch/torch.h", "ATen/ATen.h", "c10/core/Device.h", "caffe2/core/common.h"):
            self.refused({"lockstep/plan/a.cpp": f"#include <{header}>\n"}, "below the libtorch line", header)

    def test_the_line_is_drawn_by_folder_and_not_by_tier(self):
        for folder in ("data", "elastic", "checkpoint/store", "checkpoint/hugging_face", "cli", "cli/bench"):
            self.refused(
                {f"lockstep/{folder}/a.cpp": "#include <torch/torch.h>\n"},
                f"lockstep/{folder}/a.cpp:1: {folder} is below the libtorch line",
            )

    def test_a_header_of_ours_does_not_bring_libtorch_below_its_line(self):
        for header in ("lockstep/nn/linear.h", "lockstep/parallel/data/ddp.h", "lockstep/train/trainer.h"):
            self.refused({"lockstep/cli/a.cpp": f'#include "{header}"\n'}, "cli is below the libtorch line", header)

    def test_libtorch_is_accepted_above_its_line(self):
        folders = ("nn", "model", "parallel/data", "parallel/tensor", "train", "cli/trainer")
        text = '#include <ATen/ATen.h>\n#include "lockstep/nn/linear.h"\n'
        code, output = run_on({f"lockstep/{folder}/a.cpp": text for folder in folders})
        self.assertEqual((code, output), (0, ""))

    def test_the_wall_clock_is_asked_in_one_file(self):
        asks = "auto now = std::chrono::system_clock::now();\n"
        self.assertEqual(run_on({"lockstep/base/unix_time.h": asks}), (0, ""))
        for line in (asks, "clock_gettime(CLOCK_REALTIME, &t);\n", "seed(time(nullptr));\n"):
            self.refused({"lockstep/elastic/a.cpp": "\n" + line}, "lockstep/elastic/a.cpp:2: asks the wall clock")

    def test_folder_without_a_row_is_refused(self):
        self.refused({"lockstep/misc/a.h": "#pragma once\n"}, "lockstep/misc: has no row")
        self.refused({"lockstep/cli/a.cpp": '#include "lockstep/misc/a.h"\n'}, "'misc' has no row")

    def test_tree_without_sources_is_an_error(self):
        self.assertEqual(run_on({"readme": ""})[0], 2)
        self.assertEqual(run_on({"lockstep/base/notes.txt": ""})[0], 2)


if __name__ == "__main__":
    unittest.main()
