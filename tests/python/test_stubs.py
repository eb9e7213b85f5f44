"""The stubs (.pyi) say what the module has: names, keywords, and the types of what results hold."""
import ast
import inspect
import pathlib
import unittest

import fuseline

STUB = pathlib.Path(fuseline.__file__).with_suffix(".pyi")
TREE = ast.parse(STUB.read_text())
FUNCTIONS = {n.name: n for n in TREE.body if isinstance(n, ast.FunctionDef)}
CLASSES = {n.name: n for n in TREE.body if isinstance(n, ast.ClassDef)}


def properties_of(name):
    """Name -> type as text, with those of the bases."""
    out = {}
    node = CLASSES[name]
    for base in node.bases:
        if isinstance(base, ast.Name) and base.id in CLASSES:
            out.update(properties_of(base.id))
    for member in node.body:
        if isinstance(member, ast.FunctionDef) and any(
                isinstance(d, ast.Name) and d.id == "property" for d in member.decorator_list):
            out[member.name] = ast.unparse(member.returns)
    return out


def fits(value, said):
    """Whether the value is of the type that the stub says."""
    for one in (part.strip() for part in said.split(" | ")):
        if one == "None" and value is None:
            return True
        if one == "float" and isinstance(value, (int, float)) and not isinstance(value, bool):
            return True
        if one == "int" and isinstance(value, int) and not isinstance(value, bool):
            return True
        if one == "bool" and isinstance(value, bool):
            return True
        if one == "str" and isinstance(value, str):
            return True
        if one.startswith("list[dict") and isinstance(value, list):
            return all(isinstance(v, dict) for v in value)
        if one == "list[str]" and isinstance(value, list):
            return all(isinstance(v, str) for v in value)
        if one == "list[int]" and isinstance(value, list):
            return all(isinstance(v, int) for v in value)
        if one.startswith("dict") and isinstance(value, dict):
            return True
        if one.startswith("Table[") and isinstance(value, fuseline.Table):
            return True
        if one in CLASSES and isinstance(value, getattr(fuseline, one)):
            return True
    return False


class Stubs(unittest.TestCase):
    def test_they_have_every_public_name_and_no_other(self):
        said = set(FUNCTIONS) | set(CLASSES) | {"__version__"}
        self.assertEqual(said, set(fuseline.__all__))
        for name in said:
            self.assertTrue(hasattr(fuseline, name), name)

    def test_functions_take_the_same_keywords(self):
        for name, node in FUNCTIONS.items():
            got = inspect.signature(getattr(fuseline, name))
            kinds = {inspect.Parameter.POSITIONAL_OR_KEYWORD: [], inspect.Parameter.KEYWORD_ONLY: []}
            for parameter in got.parameters.values():
                kinds[parameter.kind].append(
                    (parameter.name, parameter.default is not inspect.Parameter.empty))
            positional = node.args.args
            with_default = len(positional) - len(node.args.defaults)
            said = [(a.arg, i >= with_default) for i, a in enumerate(positional)]
            self.assertEqual(said, kinds[inspect.Parameter.POSITIONAL_OR_KEYWORD], name)
            said = [(a.arg, d is not None)
                    for a, d in zip(node.args.kwonlyargs, node.args.kw_defaults)]
            self.assertEqual(said, kinds[inspect.Parameter.KEYWORD_ONLY], name)

    def test_every_function_and_class_is_documented(self):
        for name in fuseline.__all__:
            if name != "__version__":
                self.assertTrue(inspect.getdoc(getattr(fuseline, name)), name)

    def test_every_keyword_is_a_word_that_the_layers_below_know(self):
        # A keyword that the module passes on and nobody takes would be a TypeError.
        for name in ("predict", "explain", "verify", "verdict", "search", "sweep", "report"):
            for keyword in FUNCTIONS[name].args.kwonlyargs:
                if keyword.arg in ("quick", "measurements"):
                    continue
                with self.assertRaises((fuseline.FuselineError, TypeError)) as caught:
                    getattr(fuseline, name)(**{"model": "no such model", keyword.arg: "?"})
                self.assertNotIn("there is no keyword", str(caught.exception), name)


class TypesOfResults(unittest.TestCase):
    def check(self, result):
        """Every property of the result and of what it holds; and no field that the stub lacks."""
        name = type(result).__name__
        said = properties_of(name)
        for field, annotation in said.items():
            if not hasattr(type(result), field):
                self.fail(f"{name}.{field} is in the stub only")
            value = getattr(result, field)
            self.assertTrue(fits(value, annotation), f"{name}.{field} is {value!r}, not {annotation}")
            if isinstance(value, fuseline.Table):
                for row in value:
                    self.check(row)
            elif isinstance(value, fuseline.Result):
                self.check(value)
        for field in getattr(type(result), "_fields", ()):
            self.assertIn(field, said, name)

    small = {"model": "tinyllama", "gpu": "h200", "seq": 64}

    def test_predictions(self):
        self.check(fuseline.predict(**self.small, policy="coda"))
        self.check(fuseline.predict(**self.small, policy="coda", fidelity="roofline"))
        self.check(fuseline.predict(**self.small, policy="coda", layers="all"))

    def test_the_json_has_no_field_that_a_prediction_lacks(self):
        for row in fuseline.predict(**self.small, policy="eager,coda", layers="all"):
            missing = set(row.to_dict()) - set(type(row)._fields) - {"routing", "gpu_calibrated",
                                                                     "gpu_checks"}
            self.assertEqual(missing, set())
            for kernel in row.kernels:
                self.assertEqual(set(kernel.to_dict()) - set(type(kernel)._fields), set())

    def test_explanations(self):
        self.check(fuseline.explain(**self.small, policy="coda"))

    def test_verifications(self):
        self.check(fuseline.verify(model="tinyllama", seq=16, policy="coda"))

    def test_verdicts(self):
        self.check(fuseline.verdict(**self.small, policy="coda", quick=True))

    def test_searches(self):
        self.check(fuseline.search(**self.small, policy="coda", budget=2, pareto="hbm"))

    def test_programs(self):
        root = pathlib.Path(__file__).resolve().parents[2]
        program = fuseline.Program(root / "scenarios/programs/norm-router.fuse",
                                   sizes={"M": 64, "D": 256})
        self.check(program)
        self.check(program.predict())
        self.check(program.verify())
        self.check(program.explain())
        self.check(fuseline.Program(root / "docs/handbook/swish.fuse").explain())
        self.check(fuseline.Program(root / "docs/handbook/largest.fuse"))

    def test_comparisons(self):
        folder = (pathlib.Path(__file__).resolve().parents[2] / "scenarios" / "measurements" /
                  "h200-pytorch")
        self.check(fuseline.compare(folder, model="gpt2-xl", phase="decode"))

    def test_judgements(self):
        self.check(fuseline.judge(gpu="a100-sxm-80gb"))

    def test_gemms_and_sweeps(self):
        self.check(fuseline.gemm(m=64, n=64, k=64, gpu="h200"))
        for row in fuseline.sweep(model="tinyllama", seq=[64, 128], policy="coda"):
            self.check(row)


if __name__ == "__main__":
    unittest.main()
