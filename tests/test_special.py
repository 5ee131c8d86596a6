"""Special functions: values within 4 ulp, derivatives to third order in tails and at removable points, limits, dtypes.

The literals are the doubles nearest to values that mpmath gave with 60 to 80 digits.
"""

import math
import sys

import numpy as np
import pytest

import tapegrad as tg
from tapegrad import special, testing
from tapegrad.core.op import TABLE
from tapegrad.kernels import activations
from tapegrad.kernels import special as kernels
from tapegrad.kernels.namespace import NUMPY

F64 = tg.float64


def function_of(name):
    owner = tg
    for part in name.split("."):
        owner = getattr(owner, part)
    return owner


VALUES = {
    "digamma": [
        (0.13436424411240122, -7.818026342238057),
        (0.8474337369372327, -0.8606611824933071),
        (0.763774618976614, -1.0513420598675796),
        (0.2550690257394217, -4.1419086276048285),
        (1.1981740348367764, -0.2913565505114545),
        (1.1797964259154952, -0.31495163370867807),
        (1.260637189089105, -0.21479187984174483),
        (1.8943616755677566, 0.35229784866113517),
        (1.5469297933871173, 0.07947096681845149),
        (1.5141737382610032, 0.049657028128623625),
        (10.357651039198696, 2.2886759281174935),
        (6.3276706790505335, 1.763838023937818),
        (9.62280082457942, 2.2112764666271487),
        (2.0210605335111067, 0.4362781308937467),
        (6.453871940548014, 1.7852114464277626),
        (1e-300, -9.999999999999999e299),
        (1e-05, -100000.57719921567),
        (123.5, 4.812187109433143),
        (1e300, 690.7755278982137),
    ],
    "lgamma": [
        (0.6493860291067043, 0.3263941444344983),
        (0.20588599914340738, 1.4933791910662764),
        (0.85074362599853, 0.10595969421865813),
        (0.8112847118503352, 0.14131519696323613),
        (0.9061179966067108, 0.06179345780484211),
        (0.9050891721986922, 0.06255911300180705),
        (1.0082824945586994, -0.004724590993704939),
        (2.0878298325557023, 0.039576168113207),
        (1.9762408475376425, -0.009862055756050585),
        (1.9433198794261226, -0.02291501667830766),
        (4.954816029079021, 3.1102281327794206),
        (2.203285513024076, 0.09873884036124732),
        (3.5518416639112456, 1.2586045143034637),
        (5.065213155554004, 3.2767408931903317),
        (5.470685689672955, 3.9106717002017026),
        (1e-300, 690.7755278982137),
        (1e-05, 11.512919692895826),
        (123.5, 469.8172754919306),
        (1e300, 6.897755278982137e302),
    ],
    "i0": [
        (1.3985067015454358, 1.5520729258662125),
        (1.3851992492459058, 1.5403807271329177),
        (1.3126862240261317, 1.479461983018125),
        (2.7576207944264013, 4.020042741910676),
        (1.7386896875429134, 1.9111286506980838),
        (0.12893823159545326, 1.004160587525257),
        (26.101871415901748, 17005691837.224838),
        (19.354903743658404, 23233999.2334279),
        (21.415064710378694, 173217626.94308457),
        (10.461750381473225, 4365.709064383763),
        (29.821041892225562, 655563350227.9856),
        (1e-300, 1.0),
        (100.5, 1.765896920401827e42),
        (700.5, 2.5209725792992755e302),
        (713.0, 6.705128263670996e307),
    ],
    "erf": [
        (4.319358345543478, 0.9999999989942508),
        (-4.549320482330323, -0.9999999998754743),
        (-2.007657775678451, -0.9954781258066059),
        (2.657812890999221, 0.9998292117813272),
        (2.5343012363433566, 0.9996616838812741),
        (5.237287041593515, 0.9999999999998704),
        (-0.934716000463018, -0.8137945660167449),
        (3.9604283192919247, 0.9999999786747737),
        (1e-300, 1.1283791670955126e-300),
        (1e-09, 1.1283791670955127e-09),
    ],
    "erfc": [
        (2.043666796968852, 0.003850197044235856),
        (-2.3595778688049887, 1.9991529590811652),
        (1.0509672737227138, 0.1372018563440019),
        (4.5897480099822925, 8.533423219973721e-11),
        (4.154369021139754, 4.224223558957738e-09),
        (0.06340584695520501, 0.928549926305953),
        (1.0680270957906206, 0.13093669550435827),
        (-5.585690038183901, 1.9999999999999971),
        (10.854799470861353, 3.487435616708121e-53),
        (21.948084951086056, 1.5919210554548865e-211),
        (14.286279986015487, 9.055280472778729e-91),
        (9.460148031581019, 8.057667184172846e-41),
        (16.97597522776306, 2.3133120113514275e-127),
    ],
    "erfinv": [
        (0.40608152413126297, 0.377005497606437),
        (0.3489716610046545, 0.3198484846386132),
        (-0.25059395899671943, -0.22586591862167207),
        (-0.12207673991087375, -0.10861328464310573),
        (0.016852976499963646, 0.014936672285281841),
        (0.5568852300002916, 0.5423113525776523),
        (0.041876835226290376, 0.03712943402516907),
        (-0.21348981007154788, -0.19151638947879962),
        (1e-300, 8.86226925452758e-301),
        (0.9999999999999999, 5.8635847487551676),
        (-0.75, -0.8134198475976185),
    ],
}

DERIVATIVES = [
    ("lgamma", 0.01, [4.599479878042022, -100.56088545786868, 10001.621213528313, -2000002.340398677]),
    ("lgamma", 0.5, [0.5723649429247001, -1.9635100260214235, 4.934802200544679, -16.82879664423432]),
    ("lgamma", 1.0, [0.0, -0.5772156649015329, 1.6449340668482264, -2.4041138063191885]),
    ("lgamma", 2.0, [0.0, 0.42278433509846713, 0.6449340668482264, -0.4041138063191886]),
    ("lgamma", 7.5, [7.534364236758733, 1.9467574842460869, 0.1426158966967038, -0.020305252536644666]),
    ("lgamma", 40.0, [106.63176026064346, 3.676327374034843, 0.02531510384129103, -0.0006408202718352986]),
    ("digamma", 0.01, [-100.56088545786868, 10001.621213528313, -2000002.340398677, 600000006.2510618]),
    ("digamma", 1.0, [-0.5772156649015329, 1.6449340668482264, -2.4041138063191885, 6.493939402266829]),
    ("digamma", 1.4616321449683622, [-9.241265521729427e-17, 0.9676722454476212, -0.8855263379671844, 1.5509985657339065]),
    ("digamma", 8.0, [2.01564147795561, 0.1331370146940314, -0.017699569195767775, 0.004699239795945104]),
    ("digamma", -0.5, [0.03648997397857652, 8.934802200544679, -0.82879664423432, 193.40909103400244]),
    ("digamma", -2.25, [4.158583564657972, 19.37941051186914, 123.89694977406016, 1558.4550231887144]),
    ("erf", 0.0, [0.0, 1.1283791670955126, 0.0, -2.256758334191025]),
    ("erf", 0.5, [0.5204998778130465, 0.8787825789354448, -0.8787825789354448, -0.8787825789354448]),
    ("erf", -2.0, [-0.9953222650189527, 0.020666985354092053, 0.08266794141636821, 0.28933779495728873]),
    ("erf", 5.0, [0.9999999999984626, 1.5670866531017336e-11, -1.5670866531017336e-10, 1.5357449200396988e-09]),
    ("erfc", -1.0, [1.8427007929497148, -0.4151074974205947, -0.8302149948411894, -0.8302149948411894]),
    ("erfc", 0.0, [1.0, -1.1283791670955126, 0.0, 2.256758334191025]),
    ("erfc", 3.0, [2.209049699858544e-05, -0.00013925305194674786, 0.0008355183116804871, -0.004734603766189427]),
    ("erfc", 20.0, [5.395865611607901e-176, -2.1610374743867984e-174, 8.644149897547193e-173, -3.453337884070104e-171]),
    ("erfinv", 0.0, [0.0, 0.886226925452758, 0.0, 1.392081999207927]),
    ("erfinv", 0.5, [0.4769362762044699, 1.1125848189719498, 1.1807463499934, 5.26058253926122]),
    ("erfinv", -0.99, [-1.8213863677184494, 24.450876473746412, -2177.8147786336217, 417187.194936322]),
    ("special.erfcx", -2.0, [108.94090438997797, -436.8919967270074, 1965.4497956879854, -9609.367169659972]),
    ("special.erfcx", 0.0, [1.0, -1.1283791670955126, 2.0, -4.51351666838205]),
    ("special.erfcx", 1.0, [0.427583576155807, -0.27321201478389856, 0.3087431227438169, -0.4753618136479605]),
    ("special.erfcx", 30.0, [0.01879588886141675, -0.0006258354105074841, 4.165309238445888e-05, -4.156098962403721e-06]),
    (
        "special.erfcx",
        1000.0,
        [0.0005641893014533876, -5.641887372654967e-07, 1.1283757819707055e-09, -3.3851205756878907e-12],
    ),
    (
        "special.ndtr",
        -30.0,
        [4.906713927148187e-198, 1.4736461348785476e-196, 4.420938404635642e-195, 1.3248078752558141e-193],
    ),
    ("special.ndtr", -1.0, [0.15865525393145705, 0.24197072451914334, 0.24197072451914334, 0.0]),
    ("special.ndtr", 0.0, [0.5, 0.3989422804014327, 0.0, -0.3989422804014327]),
    ("special.ndtr", 2.0, [0.9772498680518208, 0.05399096651318805, -0.1079819330263761, 0.16197289953956415]),
    ("special.log_ndtr", -100.0, [-5005.524208694205, 100.00999800099926, -0.9999000599500517, 1.997602995862343e-06]),
    ("special.log_ndtr", -5.0, [-15.064998393988725, 5.186503967125842, -0.9673035653828878, 0.0108257645063567]),
    ("special.log_ndtr", -1.0, [-1.8410216450092636, 1.525135276160981, -0.8009023344296512, 0.11693119540604884]),
    ("special.log_ndtr", 0.0, [-0.6931471805599453, 0.7978845608028654, -0.6366197723675814, 0.21801361414499015]),
    ("special.log_ndtr", 1.0, [-0.17275377902344988, 0.2875999709391784, -0.3703137142233946, 0.2957181701822712]),
    (
        "special.log_ndtr",
        6.0,
        [-9.865876455243758e-10, 6.075882855817676e-09, -3.645529717182241e-08, 2.1265590061811303e-07],
    ),
    ("special.entr", 0.001, [0.0069077552789821375, 5.907755278982137, -1000.0, 1000000.0]),
    ("special.entr", 0.5, [0.34657359027997264, -0.3068528194400547, -2.0, 4.0]),
    ("special.entr", 3.0, [-3.295836866004329, -2.0986122886681096, -0.3333333333333333, 0.1111111111111111]),
    ("logit", 0.001, [-6.906754778648554, 1001.001001001001, -999998.9979969959, 2000000002.006012]),
    ("logit", 0.5, [0.0, 4.0, 0.0, 32.0]),
    ("logit", 0.9, [2.1972245773362196, 11.111111111111112, 98.76543209876547, 2002.743484224967]),
    ("i0", 0.0, [1.0, 0.0, 0.5, 0.0]),
    ("i0", 1.0, [1.2660658777520084, 0.565159103992485, 0.7009067737595233, 0.42941143422544675]),
    ("i0", 8.0, [427.5641157218048, 399.8731367825601, 377.57997362398476, 358.9236578417895]),
    ("i0", 50.0, [2.9325537838493362e20, 2.903078590103557e20, 2.874492212047265e20, 2.846749977298653e20]),
    ("special.i1", 0.0, [0.0, 0.5, 0.0, 0.375]),
    ("special.i1", 1.0, [0.565159103992485, 0.7009067737595233, 0.42941143422544675, 0.5429906790681531]),
    ("special.i1", 8.0, [399.8731367825601, 377.57997362398476, 358.9236578417895, 342.95188612895373]),
    ("special.i1", 50.0, [2.903078590103557e20, 2.874492212047265e20, 2.846749977298653e20, 2.8198103570134883e20]),
    ("special.i0e", 0.5, [0.6450352704491501, -0.4886144672642784, 0.6643873281588133, -1.0546371653672098]),
    ("special.i0e", 8.0, [0.14343178185685032, -0.009289288564152133, 0.0018107654667169925, -0.0005907390885561835]),
    ("special.i0e", 50.0, [0.05656162664745419, -0.0005685027545587929, 1.714303125967778e-05, -8.616184962150965e-07]),
    ("special.i1e", 0.5, [0.1564208031848717, 0.17577286089453498, -0.3902498372083965, 0.7385868759823355]),
    ("special.i1e", 8.0, [0.13414249329269817, -0.00747852309743514, 0.001220026378160809, -0.000319462169933368]),
    ("special.i1e", 50.0, [0.0559931238928954, -0.0005513597232991151, 1.6281412763462684e-05, -8.009875199797757e-07]),
    (
        "nn.functional.softplus",
        -40.0,
        [4.248354255291589e-18, 4.248354255291589e-18, 4.248354255291589e-18, 4.248354255291589e-18],
    ),
    ("nn.functional.softplus", -1.0, [0.3132616875182228, 0.2689414213699951, 0.19661193324148185, 0.09085774767294841]),
    ("nn.functional.softplus", 0.0, [0.6931471805599453, 0.5, 0.25, 0.0]),
    (
        "nn.functional.softplus",
        15.0,
        [15.000000305902274, 0.9999996940977731, 3.059021333494523e-07, -3.059019461971647e-07],
    ),
    ("nn.functional.logsigmoid", -40.0, [-40.0, 1.0, -4.248354255291589e-18, -4.248354255291589e-18]),
    ("nn.functional.logsigmoid", 0.0, [-0.6931471805599453, 0.5, -0.25, 0.0]),
    ("nn.functional.logsigmoid", 2.0, [-0.1269280110429725, 0.11920292202211756, -0.10499358540350652, 0.07996250105615306]),
    (
        "nn.functional.logsigmoid",
        40.0,
        [-4.248354255291589e-18, 4.248354255291589e-18, -4.248354255291589e-18, 4.248354255291589e-18],
    ),
    ("sigmoid", -40.0, [4.248354255291589e-18, 4.248354255291589e-18, 4.248354255291589e-18, 4.248354255291589e-18]),
    ("sigmoid", 0.0, [0.5, 0.25, 0.0, -0.125]),
    ("sigmoid", 3.0, [0.9525741268224333, 0.04517665973091213, -0.04089157466094348, 0.03293107622425642]),
    ("expm1", -40.0, [-1.0, 4.248354255291589e-18, 4.248354255291589e-18, 4.248354255291589e-18]),
    ("expm1", -1e-09, [-9.999999995e-10, 0.999999999, 0.999999999, 0.999999999]),
    ("expm1", 2.0, [6.38905609893065, 7.38905609893065, 7.38905609893065, 7.38905609893065]),
    ("log1p", -0.5, [-0.6931471805599453, 2.0, -4.0, 16.0]),
    ("log1p", 1e-09, [9.999999995e-10, 0.999999999, -0.9999999980000001, 1.999999994]),
    ("log1p", 2.0, [1.0986122886681098, 0.3333333333333333, -0.1111111111111111, 0.07407407407407407]),
    ("exp2", -3.0, [0.125, 0.08664339756999316, 0.06005662673977518, 0.04162808149861619]),
    ("exp2", 0.5, [1.4142135623730951, 0.9802581434685472, 0.6794631683661498, 0.4709679794473242]),
    ("sinc", 0.0, [1.0, 0.0, -3.289868133696453, 0.0]),
    ("sinc", 1e-05, [0.9999999998355066, -3.289868133371756e-05, -3.289868132722362, 0.00019481818204511466]),
    ("sinc", 0.5, [0.6366197723675814, -1.2732395447351628, -1.1902271282389358, 7.141362769433615]),
    ("sinc", 1.0, [0.0, -1.0, 2.0, 3.8696044010893584]),
    ("sinc", 3.0, [0.0, -0.3333333333333333, 0.2222222222222222, 3.0676459114742305]),
]


def derivatives(f, x, order):
    """Value and derivatives of f at the float64 number x."""
    x = tg.tensor(x, dtype=F64, requires_grad=True)
    y = f(x)
    result = [y.item()]
    for _ in range(order):
        (y,) = tg.autograd.grad(y, x, create_graph=True)
        result.append(y.item())
    return result


@pytest.mark.parametrize("name", VALUES)
def test_within_4_ulp(name):
    x, exact = np.array(VALUES[name]).T
    got = function_of(name)(tg.from_numpy(x)).numpy()
    assert (np.abs(got - exact) <= 4 * np.spacing(np.abs(exact))).all()


@pytest.mark.parametrize(("name", "x", "exact"), DERIVATIVES)
def test_to_third_order(name, x, exact):
    got = derivatives(function_of(name), x, 3)
    for order, (g, e) in enumerate(zip(got, exact, strict=True)):
        # a zero of the value is at the end of rounding of pi * x
        assert abs(g - e) <= (1e-15 if e == 0 else 2e-12 * abs(e)), order


@pytest.mark.parametrize("order", range(6))
def test_derivatives_of_sinc_at_0(order):
    exact = 0.0 if order % 2 else (-1) ** (order // 2) * math.pi**order / (order + 1)
    assert derivatives(tg.sinc, 0.0, order)[order] == pytest.approx(exact, rel=1e-15)


@pytest.mark.exhaustive
@pytest.mark.parametrize("order", range(5))
@pytest.mark.parametrize("x", [0.3, 1.0, 2.9, 3.1, 12.0, 1e3])
def test_derivatives_of_sinc_on_both_sides_of_the_series(order, x):
    """sin(x)/x is the mean of cos(t*x) over 0 < t < 1: by Gauss's rule."""
    nodes, weights = np.polynomial.legendre.leggauss(800)
    t = 0.5 + 0.5 * nodes
    exact = float((0.5 * weights * t**order * np.cos(t * x + order * math.pi / 2)).sum())
    got = kernels.sin_ratio(NUMPY, np.array([x]), order)[0]
    assert got == pytest.approx(exact, rel=1e-11, abs=1e-13)


@pytest.mark.parametrize("x", [-30.0, -2.0, 0.0, 0.7, 5.0, 1e4])
@pytest.mark.parametrize("order", [1, 2, 3, 5])
def test_repeated_integrals_of_erfc(order, x):
    """2*n*E(n) + 2*x*E(n - 1) = E(n - 2): Abramowitz and Stegun 7.2.5, scaled; E(-1) = 2/sqrt(pi)."""
    x = np.array([x])
    e = [np.array([2 / math.sqrt(math.pi)])] + [kernels.erfcx(NUMPY, x, n) for n in range(order + 1)]
    left, right = 2 * order * e[order + 1], e[order - 1] - 2 * x * e[order]
    if np.isfinite(e[1]).all():
        assert np.abs(left - right) <= 2e-14 * (np.abs(e[order - 1]) + np.abs(2 * x * e[order]))


def test_derivatives_of_erfcx_do_not_cancel():
    """erfcx(x) = (1 - 1/(2*x*x) + ...)/(x*sqrt(pi)): the third derivative at 1e6 to 11 digits."""
    got = derivatives(special.erfcx, 1e6, 3)
    for order, g in enumerate(got):
        assert g == pytest.approx((-1) ** order * math.factorial(order) / math.sqrt(math.pi) / 1e6 ** (order + 1), rel=1e-11)


def test_second_derivative_of_log_ndtr_far_left():
    """-h*(x + h) tends to -1 + 3/x**2 - ..: what cancels is not computed."""
    value = derivatives(special.log_ndtr, -1e6, 2)
    assert value[1] == pytest.approx(1e6, rel=1e-11) and value[2] == pytest.approx(-1.0, rel=1e-11)
    assert derivatives(special.log_ndtr, 60.0, 3) == [0.0, 0.0, 0.0, 0.0]


# ---------------------------------------------------------------------------------------------------- limits and edges

inf, nan = math.inf, math.nan
LIMITS = [
    ("lgamma", [0.0, -0.0, -1.0, -7.0, inf, -inf, nan], [inf, inf, inf, inf, inf, inf, nan]),
    ("digamma", [0.0, -0.0, -1.0, -7.0, inf, -inf, nan], [-inf, inf, nan, nan, inf, nan, nan]),
    ("erfinv", [-1.0, 1.0, 1.5, -2.0, nan, -0.0], [-inf, inf, nan, nan, nan, -0.0]),
    ("special.ndtri", [0.0, 1.0, 0.5, -0.1, 1.1, nan], [-inf, inf, 0.0, nan, nan, nan]),
    ("special.erfcx", [-inf, -30.0, inf, nan], [inf, inf, 0.0, nan]),
    ("special.log_ndtr", [-inf, inf, nan], [-inf, -0.0, nan]),
    ("special.entr", [0.0, -0.0, -1.0, inf, nan], [0.0, 0.0, -inf, -inf, nan]),
    ("logit", [0.0, 1.0, -0.1, 1.1, nan], [-inf, inf, nan, nan, nan]),
    ("i0", [inf, -inf, 720.0, nan], [inf, inf, inf, nan]),
    ("special.i1", [inf, -inf, nan], [inf, -inf, nan]),
    ("special.i0e", [inf, -inf, nan], [0.0, 0.0, nan]),
    ("special.i1e", [inf, -inf, nan], [0.0, -0.0, nan]),
    ("sinc", [0.0, -0.0, nan], [1.0, 1.0, nan]),
    ("isposinf", [inf, -inf, nan, 0.0], [True, False, False, False]),
    ("isneginf", [inf, -inf, nan, 0.0], [False, True, False, False]),
    ("signbit", [-0.0, 0.0, -inf, 1.0], [True, False, True, False]),
]


@pytest.mark.parametrize(("name", "x", "expected"), LIMITS)
@pytest.mark.parametrize("dtype", [tg.float32, F64])
def test_limits(name, x, expected, dtype):
    got = function_of(name)(tg.tensor(x, dtype=dtype))
    np.testing.assert_array_equal(got.numpy(), expected)
    assert not any(np.signbit(g) != np.signbit(e) for g, e in zip(got.tolist(), expected, strict=True) if e == 0)


@pytest.mark.parametrize("n", [1, 2, 3, 4])
def test_polygamma_at_its_poles(n):
    pole = inf if n % 2 else -inf
    assert tg.polygamma(n, tg.tensor([0.0, -1.0, -3.0])).tolist() == [pole] * 3
    assert tg.polygamma(n, tg.tensor(inf)).item() == 0.0


@pytest.mark.parametrize("n", [0, 1, 2, 5, 12])
def test_polygamma_recurrence_and_reflection(n):
    """psi(x + 1) - psi(x) = (-1)**n * n!/x**(n + 1), on both sides of 0."""
    x = np.array([-4.7, -2.5, -0.3, 0.2, 1.1, 6.0])
    step = kernels.polygamma(NUMPY, x + 1, n) - kernels.polygamma(NUMPY, x, n)
    exact = (-1.0) ** n * math.factorial(n) / x ** (n + 1)
    size = np.abs(kernels.polygamma(NUMPY, x + 1, n)) + np.abs(kernels.polygamma(NUMPY, x, n))
    assert (np.abs(step - exact) <= 1e-12 * size).all()


def test_zeta():
    s = tg.tensor([2.0, 4.0, 3.0, 1.0, 0.5, 2.5, 2.0], dtype=F64)
    q = tg.tensor([1.0, 1.0, 0.0, 2.0, 1.0, -0.5, -0.5], dtype=F64)
    expected = [math.pi**2 / 6, math.pi**4 / 90, inf, inf, nan, nan, math.pi**2 / 2 + 4]
    # zeta(2, -1/2) = 4 + zeta(2, 1/2)
    np.testing.assert_allclose(special.zeta(s, q), expected, rtol=1e-14)
    with pytest.raises(NotImplementedError, match="the derivative for 'zeta' is not implemented"):
        special.zeta(s.requires_grad_(), q).sum().backward()


def test_mvlgamma():
    x = tg.tensor([3.0, 7.5], dtype=F64)
    exact = [sum(math.lgamma(v - 0.5 * j) for j in range(3)) + 1.5 * math.log(math.pi) for v in (3.0, 7.5)]
    np.testing.assert_allclose(tg.mvlgamma(x, 3), exact, rtol=1e-14)
    with pytest.raises(RuntimeError, match="p has to be greater than or equal to 1"):
        tg.mvlgamma(x, 0)
    with pytest.raises(RuntimeError, match="polygamma\\(n, x\\) does not support negative n"):
        tg.polygamma(-1, x)


def gradients(f, *values):
    xs = [tg.tensor(v, dtype=F64, requires_grad=True) for v in values]
    y = f(*xs)
    y.backward(tg.ones_like(y))
    return [x.grad.tolist() for x in xs]


def test_logaddexp_of_equal_infinities():
    for f in (tg.logaddexp, tg.logaddexp2):
        assert gradients(f, [inf, -inf, inf, 1.0], [inf, -inf, -inf, inf]) == [[0.5, 0.5, 1.0, 0.0], [0.5, 0.5, 0.0, 1.0]]
        assert f(tg.tensor([inf, -inf, inf]), tg.tensor([inf, -inf, -inf])).tolist() == [inf, -inf, inf]
        assert math.isnan(f(tg.tensor(nan), tg.tensor(inf)).item())


def test_logaddexp_of_complex_numbers():
    a, b = np.array([1 + 1j, 900 - 2j, -900 + 1j]), np.array([0.5 - 1j, 899 + 1j, -901 + 3j])
    shift = np.array([0, 900, -900])
    np.testing.assert_allclose(
        tg.logaddexp(tg.from_numpy(a), tg.from_numpy(b)), shift + np.log(np.exp(a - shift) + np.exp(b - shift)), rtol=1e-14
    )
    s = tg.sigmoid(tg.tensor([800 + 1j, -800 + 1j, 0.3 - 0.2j], dtype=tg.complex128)).numpy()
    np.testing.assert_allclose(s, [1, 0, 1 / (1 + np.exp(-0.3 + 0.2j))], rtol=1e-14)


def test_xlogy_at_the_edge():
    assert gradients(tg.xlogy, [0.0, 0.0, 1.0, 0.0], [0.0, 2.0, 0.0, -1.0]) == [
        [0.0, math.log(2.0), -inf, 0.0], [0.0, 0.0, inf, 0.0]
    ]  # fmt: skip
    assert gradients(special.xlog1py, [0.0, 0.0, 1.0], [-1.0, 1.0, -1.0]) == [[0.0, math.log(2.0), -inf], [0.0, 0.0, inf]]
    assert tg.xlogy(tg.tensor([0.0, 0.0]), tg.tensor([0.0, nan])).tolist()[0] == 0.0
    assert math.isnan(tg.xlogy(tg.tensor(0.0), tg.tensor(nan)).item())
    # the mixed derivative at input = 0 is 1/other
    x, y = (tg.tensor(v, dtype=F64, requires_grad=True) for v in (0.0, 4.0))
    (g,) = tg.autograd.grad(tg.xlogy(x, y), y, create_graph=True)
    assert tg.autograd.grad(g, x)[0].item() == 0.25


def test_numbers_keep_the_tensors_precision():
    x = tg.tensor([2.0], dtype=F64)
    assert tg.xlogy(0.1, x).item() == 0.1 * math.log(2.0)
    assert tg.xlogy(x, 0.1).item() == 2.0 * math.log(0.1)
    assert tg.xlogy(0.1, x.float()).dtype == tg.float32


def test_logit_with_eps():
    assert gradients(lambda x: tg.logit(x, 0.25), [0.1, 0.25, 0.5, 0.75, 0.9]) == [[0.0, 1 / 0.1875, 4.0, 1 / 0.1875, 0.0]]
    assert tg.logit(tg.tensor([0.0, 1.0]), 0.25).tolist() == pytest.approx([-math.log(3), math.log(3)])


def test_a_branch_not_taken_through_a_pole():
    x = tg.tensor([0.0, 0.5], dtype=F64, requires_grad=True)
    for f in (tg.lgamma, tg.digamma, special.entr, special.ndtri, tg.logit):
        (g,) = tg.autograd.grad(tg.where(x > 0, f(x), 0.0).sum(), x, create_graph=True)
        assert g[0] == 0 and tg.autograd.grad(g.sum(), x)[0][0] == 0


def test_igamma():
    """P(1, x) = 1 - exp(-x), P(1/2, x) = erf(sqrt(x)), P(3, x) = 1 - exp(-x)*(1 + x + x*x/2); and what has no integral."""
    x = np.array([1e-300, 1e-9, 0.1, 0.25, 0.4, 1.0, 3.0, 9.0, 50.0, 600.0])
    polynomial = np.exp(-x) * (1 + x + x * x / 2)
    erf, erfc = (np.vectorize(f)(np.sqrt(x)) for f in (math.erf, math.erfc))
    for a, lower, upper in ((1.0, -np.expm1(-x), np.exp(-x)), (0.5, erf, erfc), (3.0, None, polynomial)):
        shape = np.full_like(x, a)
        np.testing.assert_allclose(kernels.igammac(NUMPY, shape, x), upper, rtol=1e-13)
        np.testing.assert_allclose(
            kernels.igamma(NUMPY, shape, x), 1 - upper if lower is None else lower, rtol=1e-13, atol=1e-16
        )
    assert kernels.igamma(NUMPY, np.array(3.0), np.array(1e-6)) == pytest.approx(1e-18 / 6, rel=1e-5)
    a = np.array([0, 0, 1, -1, 1, inf, inf, 1, 0, 0, nan, 1])
    x = np.array([0, 1, 0, 1, -1, 1, inf, inf, inf, -1, 1, nan])
    lower = [nan, 1, 0, nan, nan, 0, nan, 1, 1, nan, nan, nan]
    np.testing.assert_array_equal(kernels.igamma(NUMPY, a, x), lower)
    np.testing.assert_array_equal(kernels.igammac(NUMPY, a, x), 1 - np.array(lower))


def test_incomplete_gamma_functions_where_the_density_underflows():
    a, x = np.meshgrid([1e-30, 1e-8, 0.1, 0.5, 1.0, 2.5, 10.0], [800.0, 1e4, 1e15, 1e300], indexing="ij")
    assert (kernels.igamma(NUMPY, a, x) == 1).all() and (kernels.igammac(NUMPY, a, x) == 0).all()
    assert (
        kernels.igamma(NUMPY, np.array(1e6), np.array(1e-3)) == 0
        and kernels.igammac(NUMPY, np.array(1e6), np.array(1e-3)) == 1
    )
    assert tg.distributions.Gamma(0.5, 1.0).cdf(tg.tensor(800.0)).item() == 1.0


def test_igamma_by_its_shape():
    """P(1, x) = 1 - exp(-x), so that P(a, x) = P(a + 1, x) + density ties the derivatives at 2 and 1 together."""
    scipy_special = pytest.importorskip("scipy.special")
    for a, x in ((0.01, 0.3), (0.7, 2.0), (3.0, 2.5), (40.0, 55.0), (1500.0, 1470.0)):
        h = 1e-3 * math.sqrt(a) if a > 1 else 1e-3 * a
        values = [scipy_special.gammainc(a + k * h, x) for k in (-2, -1, 1, 2)]
        numeric = (values[0] - 8 * values[1] + 8 * values[2] - values[3]) / (12 * h)
        assert kernels.igamma_shape(NUMPY, np.array(a), np.array(x), 1) == pytest.approx(numeric, rel=1e-8)
        (g,) = gradients(lambda t, x=x: tg.igamma(t, tg.tensor(x, dtype=F64)), a)
        (h,) = gradients(lambda t, x=x: tg.igammac(t, tg.tensor(x, dtype=F64)), a)
        assert g == -h == pytest.approx(numeric, rel=1e-8)


# ------------------------------------------------------------------------------------------------------ SciPy is optional

SCIPY = {
    "airy": special.airy_ai, "bessel_j": special.bessel_j0, "bessel_y": special.bessel_y1,
    "bessel_k": special.modified_bessel_k0, "bessel_ke": special.scaled_modified_bessel_k1,
}  # fmt: skip


@pytest.mark.parametrize("name", SCIPY)
def test_without_scipy_the_error_names_the_extra(name, monkeypatch):
    monkeypatch.setitem(sys.modules, "scipy.special", None)
    with pytest.raises(ImportError, match=r"pip install 'tapegrad\[scipy\]'"):
        SCIPY[name](tg.tensor([1.0]))


def test_all_other_records_do_without_scipy(monkeypatch):
    monkeypatch.setitem(sys.modules, "scipy", None)
    monkeypatch.setitem(sys.modules, "scipy.special", None)
    homes = tuple(f"tapegrad.{name}" for name in ("kernels.special", "table.special"))
    names = {n for n, op in TABLE.items() if getattr(op.forward, "__module__", "") in homes}
    assert len(names) > 20
    for name in names - set(SCIPY):
        for sample in testing.samples_of(name):
            testing.forward(TABLE[name], sample.arrays, sample.params)


# ------------------------------------------------------------------------------------------------------------- dtypes

UNARY = [
    "lgamma", "digamma", "erf", "erfc", "erfinv", "i0", "sinc", "logit", "special.i0e", "special.i1", "special.i1e",
    "special.erfcx", "special.log_ndtr", "special.ndtri", "special.ndtr", "special.entr", "special.spherical_bessel_j0",
]  # fmt: skip


@pytest.mark.parametrize("name", UNARY)
def test_single_precision(name):
    f = function_of(name)
    x = np.random.default_rng(0).uniform(0.01, 0.99, 500).astype(np.float32)
    single, double = f(tg.from_numpy(x)), f(tg.from_numpy(x.astype(np.float64)))
    assert single.dtype == tg.float32
    wide = double.numpy()
    tolerance = (4 if name in ("sinc", "logit", "special.entr") else 2) * np.spacing(np.abs(wide).astype(np.float32))
    if name in ("sinc", "logit"):  # pi * x and 1 - x are rounded, and both have zeros
        tolerance = np.maximum(tolerance, 4 * np.finfo(np.float32).eps)
    assert (np.abs(single.numpy() - wide) <= tolerance).all()


@pytest.mark.parametrize("name", UNARY)
def test_shapes_layouts_and_integers(name):
    f = function_of(name)
    x = np.random.default_rng(1).uniform(0.1, 0.9, (4, 6))
    whole = f(tg.from_numpy(x)).numpy()
    np.testing.assert_array_equal(f(tg.from_numpy(x).T[::2]).numpy(), whole.T[::2])
    np.testing.assert_array_equal(f(tg.from_numpy(x[0, :1]).expand(3, 5)).numpy(), np.full((3, 5), whole[0, 0]))
    assert f(tg.tensor(x[0, 0], dtype=F64)).shape == () and f(tg.zeros(0, 3)).shape == (0, 3)
    assert f(tg.tensor([1, 0])).dtype == f(tg.tensor([True])).dtype == tg.float32
    out = tg.empty(0, dtype=F64)
    assert f(tg.from_numpy(x), out=out) is out and out.shape == (4, 6)


@pytest.mark.parametrize(
    "name", ["lgamma", "digamma", "erfinv", "i0", "logit", "special.entr", "special.erfcx", "special.i1e"]
)
def test_complex_input_is_refused(name):
    with pytest.raises(NotImplementedError, match="not implemented for 'ComplexFloat'"):
        function_of(name)(tg.tensor([1j]))


def test_names_of_torch_special():
    same = {
        "psi": tg.digamma, "gammaln": tg.lgamma, "multigammaln": tg.mvlgamma, "expit": tg.sigmoid, "gammainc": tg.igamma,
        "gammaincc": tg.igammac, "modified_bessel_i0": tg.i0,
    }  # fmt: skip
    for name, function in same.items():
        assert getattr(special, name) is function
    x = tg.rand(3) + 0.5
    assert x.polygamma(2).tolist() == tg.polygamma(2, x).tolist() == special.polygamma(2, x).tolist()
    assert not hasattr(x, "i1") and not hasattr(x, "ndtr")


INPLACE = [
    "digamma", "lgamma", "erfinv", "i0", "logit", "sinc", "deg2rad", "rad2deg", "frac", "exp2", "expm1", "log1p", "trunc",
    "fix", "absolute", "negative",
]  # fmt: skip


@pytest.mark.parametrize("name", INPLACE)
def test_in_place(name):
    x = tg.rand(4, dtype=F64) * 0.9 + 0.05
    y = x.clone()
    assert getattr(y, name + "_")() is y
    assert y.tolist() == getattr(x, name)().tolist()


# ----------------------------------------------------------------------------------------------- orthogonal polynomials

FAMILIES = {
    "chebyshev_polynomial_t": np.polynomial.chebyshev.chebval, "hermite_polynomial_h": np.polynomial.hermite.hermval,
    "hermite_polynomial_he": np.polynomial.hermite_e.hermeval, "laguerre_polynomial_l": np.polynomial.laguerre.lagval,
    "legendre_polynomial_p": np.polynomial.legendre.legval,
}  # fmt: skip


@pytest.mark.parametrize("name", FAMILIES)
def test_orthogonal_polynomials(name):
    f, reference = getattr(special, name), FAMILIES[name]
    x = np.linspace(-1.5, 1.5, 7)
    for n in range(6):
        np.testing.assert_allclose(f(tg.from_numpy(x), n), reference(x, [0] * n + [1]), rtol=1e-13, atol=1e-13)
    degrees = tg.tensor([0, 1, 2, 3, 4, -1, 2])
    each = [f(tg.from_numpy(x), n)[i].item() for i, n in enumerate(degrees.tolist())]
    assert f(tg.from_numpy(x), degrees).tolist() == each and each[5] == 0
    testing.check_grads(lambda t: f(t, 5), x, order=2)


def test_chebyshev_polynomials_of_the_other_kinds():
    """sin((n + 1)*t)/sin(t), cos((n + 1/2)*t)/cos(t/2) and sin((n + 1/2)*t)/sin(t/2) at x = cos(t)."""
    t = np.linspace(0.2, 3.0, 5)
    x = tg.from_numpy(np.cos(t))
    for n in range(5):
        for kind, exact in (
            ("u", np.sin((n + 1) * t) / np.sin(t)),
            ("v", np.cos((n + 0.5) * t) / np.cos(t / 2)),
            ("w", np.sin((n + 0.5) * t) / np.sin(t / 2)),
        ):
            np.testing.assert_allclose(getattr(special, f"chebyshev_polynomial_{kind}")(x, n), exact, rtol=1e-12, atol=1e-12)
            shifted = getattr(special, f"shifted_chebyshev_polynomial_{kind}")((x + 1) / 2, n)
            np.testing.assert_allclose(shifted, exact, rtol=1e-12, atol=1e-12)


# ---------------------------------------------------------------------------------------------- derivatives of activations

ACTIVATIONS = {
    "sigmoid": tg.sigmoid,
    "silu": tg.nn.functional.silu,
    "softplus": tg.nn.functional.softplus,
    "gelu": tg.nn.functional.gelu,
    "gelu tanh": lambda x: tg.nn.functional.gelu(x, approximate="tanh"),
    "elu": tg.nn.functional.elu,
    "leaky_relu": tg.nn.functional.leaky_relu,
}


@pytest.mark.parametrize("name", ACTIVATIONS)
def test_derivatives_in_single_precision_agree_with_double(name):
    """Over the whole line, tails included; a few ulp of the terms, which are of size 1 in the middle."""
    f = ACTIVATIONS[name]
    grid = np.linspace(-30, 30, 4001, dtype=np.float32)
    single, double = (
        tg.autograd.grad(f(x).sum(), x)[0].numpy()
        for x in (tg.from_numpy(grid.astype(dtype)).requires_grad_() for dtype in (np.float32, np.float64))
    )
    assert single.dtype == np.float32
    scale = np.maximum(np.abs(double), np.minimum(1.0, np.exp(-np.abs(grid.astype(np.float64)))) * np.abs(double).max())
    if name == "gelu tanh":  # exp magnifies the rounding of its argument, some 2 * x**3
        scale *= 1 + np.abs(grid.astype(np.float64)) ** 3
    assert (np.abs(single - double) <= 1e-6 * scale + 1e-37).all()


@pytest.mark.parametrize("name", ACTIVATIONS)
def test_derivatives_at_the_ends(name):
    x = tg.tensor([-math.inf, math.inf], dtype=F64, requires_grad=True)
    (g,) = tg.autograd.grad(ACTIVATIONS[name](x), x, tg.ones(2, dtype=F64))
    assert g.tolist() == {"sigmoid": [0.0, 0.0], "leaky_relu": [0.01, 1.0]}.get(name, [0.0, 1.0])


@pytest.mark.parametrize("dtype", [np.float32, np.float64, np.float16, np.int32, np.complex64])
@pytest.mark.parametrize("shape", [(6000,), (70, 80), (2, 3)])
def test_selection_by_bits(dtype, shape):
    rng = np.random.default_rng(0)
    mask, (x, y) = rng.random(shape) < 0.5, rng.normal(size=(2, *shape)).astype(dtype)
    if x.dtype.kind == "f":
        x.flat[0], y.flat[0], x.flat[1], y.flat[1] = math.nan, math.inf, -0.0, math.nan
    for a, b in ((x, y), (x, 0), (0, y), (x, 2), (2, y), (x, y[..., :1]), (x[::-1], y), (x, np.float64(1.5))):
        got, expected = activations.select(mask, a, b), np.where(mask, a, b)
        assert got.dtype == expected.dtype and got.tobytes() == expected.tobytes()
