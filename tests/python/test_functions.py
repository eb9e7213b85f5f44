"""The other functions: the same words and numbers as the command line."""
import json
import os
import pathlib
import subprocess
import tempfile
import unittest

import fuseline

ROOT = pathlib.Path(__file__).resolve().parents[2]
PROGRAM = os.environ.get("FUSELINE_PROGRAM")
SMALL = {"model": "tinyllama", "gpu": "h200", "seq": 256}


def command_line(*arguments):
    run = subprocess.run([PROGRAM, *arguments], capture_output=True, text=True, check=True, cwd=ROOT)
    return json.loads(run.stdout)


@unittest.skipUnless(PROGRAM, "FUSELINE_PROGRAM names no program")
class SameAsTheCommandLine(unittest.TestCase):
    words = ("--model", "tinyllama", "--gpu", "h200", "--seq", "256")

    def test_predict(self):
        said = command_line("predict", *self.words, "--policy", "eager,coda", "--format", "json")
        shared = {k: v for k, v in said.items() if k not in ("schema", "predictions")}
        got = fuseline.predict(**SMALL, policy="eager,coda").to_dicts()
        self.assertEqual(got, [{**shared, **one} for one in said["predictions"]])

    def test_explain(self):
        said = command_line("explain", *self.words, "--policy", "coda", "--format", "json")
        self.assertEqual(fuseline.explain(**SMALL, policy="coda").to_dict(), said["plans"][0])

    def test_gemm(self):
        said = command_line("gemm", "--m", "256", "--n", "512", "--k", "1024", "--gpu", "h200",
                            "--format", "json")
        self.assertEqual(fuseline.gemm(m=256, n=512, k=1024, gpu="h200").to_dict(), said)

    def test_verdict(self):
        said = command_line("verdict", *self.words, "--policy", "coda", "--quick", "--format", "json")
        said.pop("schema")
        got = fuseline.verdict(**SMALL, policy="coda", quick=True).to_dict()
        got.pop("schema")
        self.assertEqual(got, said)

    def test_search(self):
        words = ("--model", "tinyllama", "--gpu", "h200", "--seq", "48")
        said = command_line("search", *words, "--policy", "coda", "--format", "json")
        got = fuseline.search(model="tinyllama", gpu="h200", seq=48, policy="coda").to_dict()
        # How far a search gets in its time differs from run to run; what it finds here does not.
        for name in ("time_us", "hbm_bytes", "launches", "plan", "policies"):
            self.assertEqual(got[name], said[name], name)

    def test_the_energy_of_a_found_plan_is_that_of_its_prediction(self):
        found = fuseline.search(model="tinyllama", gpu="h200", seq=48, policy="coda",
                                objective="energy")
        with tempfile.TemporaryDirectory() as folder:
            file = pathlib.Path(folder) / "plan.fuse"
            file.write_text(found.plan, encoding="utf-8")
            again = fuseline.predict(model="tinyllama", gpu="h200", seq=48, plan=file)
        self.assertAlmostEqual(found.energy_j / again.energy_j, 1, places=9)
        self.assertLessEqual(found.bound, found.energy_j)

    def test_a_plan_as_text(self):
        plan = subprocess.run([PROGRAM, "explain", *self.words, "--policy", "coda", "--format", "program"],
                              capture_output=True, text=True, check=True, cwd=ROOT).stdout
        with tempfile.TemporaryDirectory() as folder:
            file = pathlib.Path(folder) / "plan.fuse"
            file.write_text(plan, encoding="utf-8")
            got = fuseline.predict(**SMALL, plan=file)
        self.assertEqual(got.time_us, fuseline.predict(**SMALL, policy="coda").time_us)

    def test_sweep(self):
        said = command_line("sweep", "--model", "tinyllama", "--gpu", "h200", "--seq", "128,256",
                            "--policy", "coda", "--format", "json")
        got = fuseline.sweep(model="tinyllama", gpu="h200", seq=[128, 256], policy="coda")
        self.assertEqual([p.time_us for p in got],
                         [c["predictions"][0]["time_us"] for c in said["cases"]])

    def test_compare(self):
        folder = str(ROOT / "scenarios" / "measurements" / "h200-pytorch")
        words = ("--model", "gpt2-xl", "--phase", "decode")
        said = command_line("compare", folder, *words, "--format", "json")
        got = fuseline.compare(folder, model="gpt2-xl", phase="decode").to_dict()
        self.assertEqual(got, said)


NORM_ROUTER = "scenarios/programs/norm-router.fuse"


@unittest.skipUnless(PROGRAM, "FUSELINE_PROGRAM names no program")
class ProgramsAsOnTheCommandLine(unittest.TestCase):
    """What Program says is what `fuseline program` says of the same file."""

    def said(self, verb, *words, file=NORM_ROUTER, status=0):
        run = subprocess.run([PROGRAM, "program", verb, file, *words, "--format", "json"],
                             capture_output=True, text=True, cwd=ROOT)
        self.assertEqual(run.returncode, status, run.stderr)
        said = json.loads(run.stdout)
        self.gpu = said["gpu"]
        for shared in ("schema", "verb", "file", "gpu", "legal"):
            del said[shared]
        return said

    def test_predict(self):
        said = self.said("predict", "--gpu", "h200")
        program = fuseline.Program(ROOT / NORM_ROUTER, gpu="h200")
        self.assertEqual({"diagnoses": [], **program.predict().to_dict()}, said)
        self.assertEqual(program.gpu, self.gpu)
        self.assertGreater(program.predict().unfused.gain, 1)

    def test_explain(self):
        said = self.said("explain")
        program = fuseline.Program(ROOT / NORM_ROUTER)
        self.assertEqual({"diagnoses": [], **program.explain().to_dict()}, said)
        self.assertEqual(program.gpu, self.gpu)

    def test_verify_at_another_size(self):
        said = self.said("verify", "--size", "M=64,D=256", "--seed", "7")
        program = fuseline.Program(ROOT / NORM_ROUTER, sizes={"M": 64, "D": 256})
        self.assertEqual(program.sizes["M"], 64)
        self.assertEqual({"diagnoses": [], **program.verify(seed=7).to_dict()}, said)
        self.assertTrue(program.verify(threads=1).passed)

    def test_mistakes(self):
        said = self.said("check", file="docs/handbook/largest.fuse", status=2)
        program = fuseline.Program(ROOT / "docs/handbook/largest.fuse")
        self.assertFalse(program.legal)
        self.assertEqual({"diagnoses": program.diagnoses.to_dicts()}, said)
        self.assertEqual(program.diagnoses["no-finisher"].line, 15)
        with self.assertRaises(fuseline.InputError) as caught:
            program.predict()
        self.assertEqual(caught.exception.line, 15)

    def test_gradients(self):
        swish = ROOT / "docs" / "handbook" / "swish.fuse"
        said = self.said("gradient", file=str(swish))["text"]
        gradient = fuseline.Program(swish).gradient()
        self.assertEqual(gradient.text, said)
        self.assertTrue(gradient.legal)
        backward, forward = fuseline.Program(swish).gradient(kept=True)
        self.assertTrue(backward.legal and forward.legal)
        with self.assertRaises(fuseline.InputError):
            fuseline.Program(swish).gradient(of="no_such_weight")


class Programs(unittest.TestCase):
    def test_a_text_is_as_good_as_a_file(self):
        text = (ROOT / NORM_ROUTER).read_text(encoding="utf-8")
        from_text = fuseline.Program(text=text, gpu="h200")
        self.assertEqual(from_text.predict(), fuseline.Program(ROOT / NORM_ROUTER, gpu="h200").predict())
        with tempfile.TemporaryDirectory() as folder:
            file = pathlib.Path(folder) / "saved.fuse"
            from_text.save(file)
            self.assertEqual(file.read_text(encoding="utf-8"), text)
        self.assertIn("legal", repr(from_text))
        self.assertIn("<pre>", from_text._repr_html_())

    def test_wrong_words(self):
        with self.assertRaises(TypeError):
            fuseline.Program()
        with self.assertRaises(TypeError):
            fuseline.Program(ROOT / NORM_ROUTER, text="fuse 1")
        for words, field in (({"gpu": "h201"}, "gpu"), ({"sizes": {"Q": 64}}, "sizes"),
                             ({"sizes": {"M": 0}}, "sizes")):
            with self.assertRaises(fuseline.InputError) as caught:
                fuseline.Program(ROOT / NORM_ROUTER, **words)
            self.assertEqual(caught.exception.field, field)
        with self.assertRaisesRegex(fuseline.InputError, "no-such.fuse"):
            fuseline.Program("no-such.fuse")
        with self.assertRaises(fuseline.InputError) as caught:
            fuseline.Program(ROOT / NORM_ROUTER).verify(threads=0)
        self.assertEqual(caught.exception.field, "threads")
        self.assertFalse(fuseline.Program(text="").legal)


class Functions(unittest.TestCase):
    def test_explain_says_why(self):
        plan = fuseline.explain(**SMALL, policy="coda")
        self.assertTrue(any(edge.fused for edge in plan.edges))
        for edge in plan.edges:
            self.assertTrue(edge.reason)
            self.assertTrue(edge.from_)
        self.assertIn(plan.kernels[0].name, plan.text)

    def test_verify_passes_and_a_fault_fails(self):
        good = fuseline.verify(model="tinyllama", seq=16, policy="coda")
        self.assertTrue(good.passed)
        self.assertTrue(good.policies["coda"].bytes_equal)
        bad = fuseline.verify(model="tinyllama", seq=16, policy="coda", fault="swapped-pair")
        self.assertFalse(bad.passed)
        self.assertTrue(any(t.problem for t in bad.policies["coda"].tensors))

    def test_a_verdict_has_every_edge(self):
        verdict = fuseline.verdict(**SMALL, policy="coda", quick=True)
        self.assertGreater(len(verdict.edges), 5)
        self.assertIn(verdict.policies["coda"].verdict, ("faster", "slower", "too close to call"))

    def test_judge_leaves_one_gpu(self):
        judged = fuseline.judge(gpu="a100-sxm-80gb")
        self.assertEqual({f.gpu for f in judged.figures}, {"a100-sxm-80gb"})

    def test_a_sweep_is_drawn_with_a_line_for_each_policy(self):
        sweep = fuseline.sweep(model="tinyllama", gpu="h200", seq="128:512:x2", policy="eager,coda")
        self.assertEqual(len(sweep), 6)
        svg = sweep.plot().svg
        self.assertEqual(svg.count("<circle"), 6)
        with self.assertRaisesRegex(fuseline.InputError, "no size varies"):
            fuseline.sweep(model="tinyllama", gpu="h200", seq=128, policy="coda").plot()

    def test_lists_have_facts_as_attributes(self):
        self.assertEqual(fuseline.models()["llama2-7b"].D, 4096)
        self.assertEqual(fuseline.gpus()["h200"].standing, "fitted")
        self.assertTrue(fuseline.blocks()["llama"].computes)
        self.assertIn("coda", fuseline.policies().names())
        with self.assertRaisesRegex(AttributeError, "layers"):
            fuseline.models()[0].depth
        with self.assertRaisesRegex(fuseline.InputError, "models, blocks"):
            fuseline.listing("things")

    def test_a_report_is_one_page_without_scripts_and_links_to_elsewhere(self):
        page = fuseline.report(**SMALL, policy="eager,coda")
        self.assertTrue(page.startswith("<!DOCTYPE html>"))
        for outside in ("<script", "<link", "src=", "@import", "url("):
            self.assertNotIn(outside, page)
        self.assertIn("--model tinyllama --gpu h200 --seq 256 --policy eager,coda", page)

    def test_control_c_stops_long_work(self):
        import signal
        import sys
        import time
        program = ("import fuseline\n"
                   "print('begun', flush=True)\n"
                   "try: fuseline.verify(model='llama2-7b', seq=1024)\n"
                   "except KeyboardInterrupt: print('stopped')\n")
        run = subprocess.Popen([sys.executable, "-c", program], stdout=subprocess.PIPE, text=True)
        self.assertEqual(run.stdout.readline(), "begun\n")
        time.sleep(0.5)
        run.send_signal(signal.SIGINT)
        self.assertEqual(run.communicate(timeout=60)[0], "stopped\n")


if __name__ == "__main__":
    unittest.main()
