"""predict(): the same numbers as the command line, results as objects, errors as exceptions."""
import json
import pathlib
import pickle
import threading
import unittest

import fuseline

SMALL = {"model": "tinyllama", "gpu": "h200", "seq": 256}


class Predicted(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.one = fuseline.predict(**SMALL, policy="coda")
        cls.several = fuseline.predict(**SMALL, policy=["eager", "coda"])

    def test_one_policy_is_a_prediction_with_units_in_its_names(self):
        p = self.one
        self.assertEqual((p.policy, p.model, p.gpu, p.phase, p.batch, p.seq),
                         ("coda", "tinyllama", "h200", "forward", 1, 256))
        self.assertLess(p.time_us_low, p.time_us)
        self.assertLess(p.time_us, p.time_us_high)
        self.assertGreater(p.time_us, p.limits.time_us)
        self.assertIsInstance(p.hbm_read_bytes, int)

    def test_the_block_is_the_sum_of_its_kernels(self):
        p = self.one
        self.assertEqual(sum(k.hbm_read_bytes for k in p.kernels), p.hbm_read_bytes)
        self.assertEqual(sum(k.hbm_write_bytes for k in p.kernels), p.hbm_write_bytes)
        self.assertEqual(sum(k.flops for k in p.kernels), p.flops)
        self.assertAlmostEqual(sum(k.time_us for k in p.kernels), p.time_us, delta=1e-6 * p.time_us)

    def test_fast_fields_and_the_dictionary_agree(self):
        facts = self.one.to_dict()
        for name in ("policy", "time_us", "time_us_low", "time_us_high", "flops", "hbm_read_bytes",
                     "hbm_write_bytes", "l2_bytes", "launches"):
            self.assertEqual(getattr(self.one, name), facts[name], name)

    def test_several_policies_are_found_by_name(self):
        self.assertEqual(self.several.names(), ["eager", "coda"])
        self.assertEqual(self.several["coda"].time_us, self.one.time_us)
        self.assertEqual(self.several["coda"].gain_over, "eager")
        with self.assertRaisesRegex(KeyError, "eager, coda"):
            self.several["koda"]

    def test_without_a_policy_all_of_them_are_predicted(self):
        all_of_them = fuseline.predict(**SMALL, fidelity="roofline")
        self.assertEqual(all_of_them.names(), [p.name for p in fuseline.policies()])

    def test_texts_and_numbers_are_the_same_word(self):
        again = fuseline.predict(model="tinyllama", gpu="h200", seq="256", policy=("coda",))
        self.assertEqual(again["coda"].time_us, self.one.time_us)

    def test_a_changed_dictionary_does_not_change_the_result(self):
        self.one.to_dict()["kernels"].clear()
        self.assertGreater(len(self.one.kernels), 0)

    def test_the_whole_model(self):
        p = fuseline.predict(**SMALL, policy="coda", layers="all", price_per_hour=2.5)
        self.assertTrue(p.total.whole_model)
        self.assertGreater(p.total.tokens_per_s_high, p.total.tokens_per_s)
        self.assertEqual(p.cost["price_per_hour"], 2.5)
        self.assertTrue(p.memory["fits"])

    def test_a_scenario_brings_its_measurements(self):
        p = fuseline.predict(str(ROOT / "scenarios" / "llama2-7b-h200.toml"), policy="eager")
        self.assertGreater(p.measured["time_us"], 0)

    def test_a_trace_has_every_kernel_one_after_the_other(self):
        path = pathlib.Path(TEMPORARY) / "trace.json"
        self.one.save_trace(path)
        events = [e for e in json.loads(path.read_text())["traceEvents"] if e["ph"] == "X"]
        self.assertEqual([e["name"] for e in events], self.one.kernels.names())
        end = 0.0
        for event in events:
            self.assertAlmostEqual(event["ts"], end, places=6)
            end = event["ts"] + event["dur"]
        self.assertAlmostEqual(end, self.one.time_us, delta=1e-6 * end)


class Shown(unittest.TestCase):
    def test_a_notebook_gets_a_table_and_a_drawing(self):
        shown = fuseline.predict(**SMALL, policy="eager,coda")._repr_html_()
        self.assertIn("<th scope=\"col\"", shown)
        self.assertIn("<svg", shown)
        self.assertNotIn("<script", shown)

    def test_drawings_are_well_formed_and_say_what_they_show(self):
        import xml.etree.ElementTree as xml
        predictions = fuseline.predict(**SMALL, policy="eager,coda")
        for picture in (predictions.plot_times(), predictions.plot_traffic(),
                        predictions.plot_kernels(), fuseline.explain(**SMALL, policy="coda").plot()):
            root = xml.fromstring(picture.svg)
            space = "{http://www.w3.org/2000/svg}"
            self.assertTrue(root.find(space + "title").text)
            self.assertTrue(root.find(space + "desc").text)
            self.assertEqual(root.get("role"), "img")

    def test_a_bar_is_as_long_as_its_time(self):
        import xml.etree.ElementTree as xml
        predictions = fuseline.predict(**SMALL, policy="eager,coda")
        root = xml.fromstring(predictions.plot_times().svg)
        space = "{http://www.w3.org/2000/svg}"
        widths = [float(r.get("width")) for r in root.iter(space + "rect")]
        self.assertEqual(len(widths), 2)
        self.assertAlmostEqual(widths[0] / widths[1],
                               predictions[0].time_us / predictions[1].time_us, delta=0.01)

    def test_what_names_hold_is_escaped(self):
        from fuseline._table import _html_table
        self.assertIn("&lt;b&gt;", _html_table("<b>", ["a"], [["<b>"]]))


class DataFrames(unittest.TestCase):
    def test_a_row_a_policy(self):
        try:
            import pandas  # noqa: F401
        except ImportError:
            self.skipTest("pandas is not installed")
        frame = fuseline.predict(**SMALL, policy="eager,coda").to_dataframe()
        self.assertEqual(list(frame["policy"]), ["eager", "coda"])
        self.assertEqual(str(frame["hbm_read_bytes"].dtype), "int64")
        kernels = fuseline.predict(**SMALL, policy="coda").to_dataframe()
        self.assertIn("time_us", kernels.columns)

    def test_without_pandas_the_error_says_what_to_install(self):
        import sys
        hidden = sys.modules.get("pandas")
        sys.modules["pandas"] = None
        try:
            with self.assertRaisesRegex(fuseline.MissingError, "python3-pandas"):
                fuseline.predict(**SMALL, policy="coda").to_dataframe()
        finally:
            if hidden is None:
                del sys.modules["pandas"]
            else:
                sys.modules["pandas"] = hidden


class Refused(unittest.TestCase):
    def refused(self, **keywords):
        with self.assertRaises(fuseline.InputError) as caught:
            fuseline.predict(**keywords)
        return caught.exception

    def test_an_unknown_name_has_its_nearest_spelling(self):
        error = self.refused(model="lama2-7b")
        self.assertEqual((error.field, error.value, error.nearest, error.file),
                         ("model", "lama2-7b", "llama2-7b", ""))
        self.assertEqual(error.hint, "Did you mean 'llama2-7b'?")
        self.assertIn("llama2-7b", str(error))

    def test_a_number_out_of_range_says_what_is_allowed(self):
        error = self.refused(batch=0)
        self.assertEqual((error.field, error.value), ("batch", "0"))
        self.assertIn("1", error.allowed)
        self.assertTrue(error.hint.startswith("Allowed: "))

    def test_a_bad_file_is_named_with_its_line(self):
        path = pathlib.Path(TEMPORARY) / "bad.toml"
        path.write_text("model = \n")
        error = self.refused(scenario=path)
        self.assertTrue(error.file.endswith("bad.toml"))
        self.assertEqual(error.line, 1)

    def test_no_command_line_is_spoken_of(self):
        for keywords in ({"policy": "koda"}, {"phase": "backward"}, {"seq": "many"},
                         {"price_per_hour": 1}, {"fidelity": "best"}):
            error = self.refused(**keywords)
            self.assertNotIn("command line", str(error))
            self.assertNotIn("--", error.field)

    def test_an_error_is_a_value_error_and_can_be_pickled(self):
        error = self.refused(gpu="h300")
        self.assertIsInstance(error, ValueError)
        again = pickle.loads(pickle.dumps(error))
        self.assertEqual((str(again), again.field), (str(error), "gpu"))

    def test_what_is_no_word_is_a_type_error(self):
        with self.assertRaisesRegex(TypeError, "batch is a dict"):
            fuseline.predict(batch={})
        with self.assertRaises(TypeError):
            fuseline.predict(bach=1)

    def test_missing_data_is_a_missing_error(self):
        import os
        import subprocess
        import sys
        run = subprocess.run(
            [sys.executable, "-c",
             "import fuseline\n"
             "try: fuseline.models()\n"
             "except fuseline.InputError as e: print(e.field)"],
            env={**os.environ, "FUSELINE_DATA": TEMPORARY}, capture_output=True, text=True)
        self.assertEqual(run.stdout.strip(), "FUSELINE_DATA", run.stderr)


class Threads(unittest.TestCase):
    def test_the_lock_is_released(self):
        # Another thread counts while this one predicts: with the lock held it would stand still.
        counted = []
        done = threading.Event()

        def count():
            while not done.is_set():
                counted.append(1)
                done.wait(0.0005)

        counter = threading.Thread(target=count)
        counter.start()
        before = len(counted)
        for seq in range(1025, 1065):
            fuseline.predict(model="llama2-7b", gpu="h200", seq=seq, policy="unfused")
        during = len(counted) - before
        done.set()
        counter.join()
        self.assertGreater(during, 20)

    def test_one_result_is_read_by_many_threads(self):
        shared = fuseline.predict(**SMALL, policy="eager,coda")
        wanted = fuseline.predict(**SMALL, policy="eager,coda").to_dicts()
        got, failed = [], []

        def read():
            try:
                got.append(shared.to_dicts())
                shared._repr_html_()
            except Exception as error:  # a thread's exception is lost otherwise
                failed.append(error)

        threads = [threading.Thread(target=read) for _ in range(8)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        self.assertEqual(failed, [])
        self.assertTrue(all(g == wanted for g in got))
        self.assertEqual(len(got), 8)


ROOT = pathlib.Path(__file__).resolve().parents[2]
TEMPORARY = ""


def setUpModule():
    global TEMPORARY, _folder
    import tempfile
    _folder = tempfile.TemporaryDirectory()
    TEMPORARY = _folder.name


def tearDownModule():
    _folder.cleanup()


if __name__ == "__main__":
    unittest.main()
