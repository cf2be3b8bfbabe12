import math
from itertools import pairwise

from agent.simulator.material import Material
from agent.simulator.models import server_of
from agent.simulator.node import Change, applied, first_state
from agent.simulator.plot import NODES_MIN, ROUND_SECONDS, Act, Request, cast_of, scenes
from agent.simulator.troubles import Trouble, slots_of
from web.up import DEMO_NODES

FAULTS = {Trouble.DOUBLE_BIT_ERROR, Trouble.FALLEN_OFF}
CAST = cast_of(NODES_MIN)


def test_the_cast_is_left_alone_by_chance_and_has_its_machines_in_two_pools() -> None:
    assert sorted((*CAST.training, *CAST.hosts)) == list(range(CAST.by_chance, NODES_MIN))
    assert {len(server_of(index).gpu_places) for index in CAST.training} == {8}


def test_the_demos_own_faults_do_not_make_a_tenth_of_its_pool_unhealthy_within_ten_minutes() -> None:
    faults = [scene for scene in scenes(CAST, 0) if isinstance(scene.play, Change) and scene.play.trouble in FAULTS]
    rounds = math.ceil(600 / ROUND_SECONDS) + 1
    assert rounds * len(faults) <= len(cast_of(DEMO_NODES).training) / 10


def test_a_round_is_in_order_and_within_its_time() -> None:
    times = [scene.at for scene in scenes(CAST, 0)]
    assert times == sorted(times)
    assert times[-1] < ROUND_SECONDS <= 120


def test_rounds_go_through_the_cast_and_no_round_uses_a_machine_in_two_roles() -> None:
    used = [{scene.play.node for scene in scenes(CAST, number)} for number in range(len(CAST.training))]
    assert all(len(machines) == 4 for machines in used)
    assert all(first != second for first, second in pairwise(used))
    assert set().union(*used) == {*CAST.training, *CAST.hosts}


def test_all_that_happens_can_happen_to_its_machine_and_is_put_right_but_by_the_reboot() -> None:
    for number in range(len(CAST.training)):
        states = {node: first_state(Material(1, node)) for node in (*CAST.training, *CAST.hosts)}
        for scene in scenes(CAST, number):
            if isinstance(scene.play, Change):
                state = states[scene.play.node]
                if scene.play.trouble is not None:
                    assert scene.play.slot < slots_of(state.server, scene.play.trouble)
                states[scene.play.node] = applied(state, scene.play)
        left = [trouble for state in states.values() for trouble, _ in state.troubles]
        assert left == [Trouble.FALLEN_OFF]
        assert not any(state.lost_gpus for state in states.values())


def test_the_operator_acts_in_each_way() -> None:
    acts = [scene.play.act for scene in scenes(CAST, 0) if isinstance(scene.play, Request)]
    assert set(acts) == set(Act)
    assert acts.index(Act.ALLOCATE) < acts.index(Act.CLEAR) < acts.index(Act.RELEASE)
