import { beforeEach, describe, expect, it } from 'vitest';
import { CommandStatus } from '../../../../abi/command-status.ts';
import type { CommandName } from '../../../../abi/commands.ts';
import { EventType, qpEqe } from '../../../../abi/eqe.ts';
import { OptionalParameter, qpTransitions } from '../../../../abi/qp-transitions.ts';
import { PathMtu, QpState, qpc, qpMailbox, ServiceType } from '../../../../abi/qpc.ts';
import { viewOf } from '../../../../base/index.ts';
import {
  broughtUp,
  bufferAddress,
  createCq,
  createEq,
  createSrq,
  firstQpn,
  initMailbox,
  must,
} from '../../testing/bring-up.ts';
import type { ControlBench } from '../../testing/control-bench.ts';

const { OK, BAD_RESOURCE, BAD_RES_STATE, BAD_PARAM, EXCEED_LIM, ICM_ERROR, BAD_QP_STATE } = CommandStatus;
const qpn = firstQpn + 5;

let bench: ControlBench;
let cqn: number;

beforeEach(() => {
  bench = broughtUp();
  cqn = createCq(bench, 1, createEq(bench, 0));
});

const context = () =>
  qpc.decode(bench.tables.qps.bytes, bench.tables.qps.offsetOf(bench.tables.qps.slotOf(qpn)));
const create = (fields = {}): number =>
  bench.command('RST2INIT_QP', { inBox: initMailbox(cqn, fields), inputModifier: qpn }).status;
/** All that a transition must name: a path MTU of 256 bytes. */
const leastMailbox = qpMailbox.encode({ context: { pathMtu: PathMtu.MTU_256 } });
const transition = (name: CommandName, inBox = leastMailbox): number =>
  bench.command(name, { inBox, inputModifier: qpn }).status;

/** Brings the QP to a state by legal transitions, or sets a state that only the device itself causes. */
function bringTo(state: number): void {
  create();
  const path: CommandName[] = ['INIT2RTR_QP', 'RTR2RTS_QP'];
  const steps = state === QpState.INIT ? 0 : state === QpState.RTR ? 1 : 2;
  for (const name of path.slice(0, steps)) transition(name);
  if (state === QpState.SQD) transition('RTS2SQD_QP');
  if (state === QpState.ERR) transition('2ERR_QP');
  const { qps } = bench.tables;
  if (state === QpState.SQER || state === QpState.SQ_DRAINING) {
    qpc.fields.state.set(qps.view, qps.offsetOf(qps.slotOf(qpn)), state);
  }
}

describe('RST2INIT_QP', () => {
  it('sheet 3.17: creates the context with the fields of the transition, and no others', () => {
    expect(create({ remoteQpn: 0x77, nextSendPsn: 5, logMaxResponderReads: 3, localQpn: 1 })).toBe(OK);
    expect(context()).toMatchObject({
      state: QpState.INIT,
      serviceType: ServiceType.RC,
      pd: 5,
      sqLogCount: 6,
      localQpn: qpn, // the command's, not the mailbox's
      remoteQpn: 0,
      nextSendPsn: 0,
      logMaxResponderReads: 0,
    });
    expect(bench.dataPath.calls).toContain('qpCreated 0');
  });

  it.each([
    ['a send CQ that does not exist', { sendCqn: 999 }, BAD_RESOURCE],
    ['a receive CQ that does not exist', { receiveCqn: 999 }, BAD_RESOURCE],
    ['an SRQ that does not exist', { srqAttached: 1, srqn: 99 }, BAD_RESOURCE],
    ['a service the interface does not know', { serviceType: 5 }, BAD_PARAM],
    ['a UAR page beyond the area', { uarPage: 1024 }, BAD_PARAM],
    ['a send queue beyond the limit', { sqLogCount: 15 }, EXCEED_LIM],
    ['an MTT address that is not mapped', { mttAddress: 0xff_0000_0000 }, ICM_ERROR],
  ])('sheet 5.1: refuses a context with %s', (_what, fields, status) => {
    expect(create(fields)).toBe(status);
    expect(bench.tables.qps.liveCount).toBe(0);
    expect(create()).toBe(OK);
  });

  it('ignores the receive queue sizes of a QP on an SRQ', () => {
    const srqn = createSrq(bench);
    expect(create({ srqAttached: 1, srqn, rqSizeBorrow: 1, rqLogCount: 15, rqLogStride16: 4 })).toBe(OK);
  });

  it('sheet 3.2, 4.3: refuses reserved numbers, chunks that are not mapped, and another QP in the same context', () => {
    const at = (inputModifier: number) =>
      bench.command('RST2INIT_QP', { inBox: initMailbox(cqn), inputModifier }).status;
    expect(at(firstQpn - 1)).toBe(BAD_RESOURCE);
    expect(at(1024)).toBe(ICM_ERROR); // 256 bytes each: 1024 contexts in a chunk
    expect(at(qpn)).toBe(OK);
    expect(at(qpn)).toBe(BAD_QP_STATE);
    expect(at(qpn + 2 ** 16)).toBe(BAD_RES_STATE); // 2^16 contexts: same index, other generation
  });

  it('sheet 4.1: takes every QP whose context is mapped: 1,024 of 256 bytes in a chunk of 256 KiB, less the reserved', () => {
    const status = (number: number): number =>
      bench.command('RST2INIT_QP', { inBox: initMailbox(cqn), inputModifier: number }).status;
    for (let number = firstQpn; number < 1024; number++) expect(status(number)).toBe(OK);
    expect(status(1024)).toBe(ICM_ERROR);
    expect(bench.tables.qps.liveCount).toBe(1024 - firstQpn);
  });
});

describe('transitions', () => {
  const live = [
    QpState.INIT,
    QpState.RTR,
    QpState.RTS,
    QpState.SQER,
    QpState.SQD,
    QpState.ERR,
    QpState.SQ_DRAINING,
  ];
  const names = Object.keys(qpTransitions) as (keyof typeof qpTransitions)[];
  const changing = names.filter((name) => !['RST2INIT_QP', '2ERR_QP', '2RST_QP'].includes(name));
  const table = changing.flatMap((name) => live.map((from) => [name, from] as const));

  it.each(table)('sheet 3.17: %s from state %i succeeds exactly where the table allows it', (name, from) => {
    bringTo(from);
    const before = bench.tables.qps.bytes.slice();
    const { from: legal, to } = qpTransitions[name];
    const isLegal = (legal as readonly number[]).includes(from);
    expect(transition(name)).toBe(isLegal ? OK : BAD_QP_STATE);
    if (isLegal) expect(context().state).toBe(to);
    else expect(bench.tables.qps.bytes).toEqual(before);
  });

  it('sheet 3.17: refuse a QP that is in reset', () => {
    for (const name of changing) expect(transition(name)).toBe(BAD_QP_STATE);
  });

  it('sheet 3.17: take required fields always and others by the mask only', () => {
    bringTo(QpState.RTS);
    const inBox = qpMailbox.encode({
      optionalParameterMask: 1 << OptionalParameter.MIN_RNR_NAK,
      context: { minRnrNak: 12, qkey: 0x1234, pd: 99, nextSendPsn: 77 },
    });
    expect(transition('RTS2RTS_QP', inBox)).toBe(OK);
    expect(context()).toMatchObject({ minRnrNak: 12, qkey: 0, pd: 5, nextSendPsn: 0 });
    expect(bench.dataPath.calls.at(-1)).toBe(`qpModified 0 ${QpState.RTS}`);
  });

  it('sheet 3.17: leave P_Key index and ACK timeout alone when the whole primary path is replaced', () => {
    create();
    const inBox = qpMailbox.encode({
      context: {
        pathMtu: PathMtu.MTU_256,
        remoteQpn: 0x88,
        primaryPath: { remoteLid: 7, pkeyIndex: 9, ackTimeout: 14 },
      },
    });
    expect(transition('INIT2RTR_QP', inBox)).toBe(OK);
    expect(context().remoteQpn).toBe(0x88);
    expect(context().primaryPath).toMatchObject({ remoteLid: 7, pkeyIndex: 0, ackTimeout: 0 });
  });

  it('see a QP that moved to error by itself while the mailbox was read', () => {
    bringTo(QpState.RTR);
    bench.dataPath.onQpSync = (slot) =>
      qpc.fields.state.set(bench.tables.qps.view, bench.tables.qps.offsetOf(slot), QpState.ERR);
    expect(transition('RTR2RTS_QP')).toBe(BAD_QP_STATE);
  });

  it('sheet 3.17: flush once on 2ERR, and take it of a QP in reset', () => {
    bringTo(QpState.RTS);
    expect(transition('2ERR_QP')).toBe(OK);
    expect(transition('2ERR_QP')).toBe(OK);
    expect(bench.dataPath.calls.filter((call) => call === 'qpToError 0').length).toBe(1);
    expect(bench.command('2ERR_QP', { inputModifier: qpn + 1 }).status).toBe(OK);
  });
});

describe('2RST_QP', () => {
  it.each([2, 3])(
    'sheet 3.17: with opcode modifier %i ends when the pipelines are empty, and frees the context',
    (opcodeModifier) => {
      bringTo(QpState.RTS);
      bench.dataPath.busyQps.add(0);
      bench.post('2RST_QP', { inputModifier: qpn, opcodeModifier });
      bench.run(50_000);
      expect(bench.tables.qps.liveCount).toBe(1);
      bench.dataPath.busyQps.clear();
      bench.run();
      expect(bench.tables.qps.liveCount).toBe(0);
      expect(bench.dataPath.calls.slice(-2)).toEqual(['qpDestroyed 0', 'beginFence']);
      expect(create()).toBe(OK);
    },
  );

  it('sheet 3.17: succeeds for a QP that is in reset already', () => {
    expect(bench.command('2RST_QP', { inputModifier: qpn, opcodeModifier: 2 }).status).toBe(OK);
  });
});

describe('QUERY_QP', () => {
  it('sheet 3.17: returns the live state and counters behind the mask', () => {
    bringTo(QpState.RTS);
    bench.dataPath.onQpSync = (slot) =>
      qpc.fields.nextSendPsn.set(bench.tables.qps.view, bench.tables.qps.offsetOf(slot), 0x4321);
    const { outBox } = must(bench, 'QUERY_QP', { inputModifier: qpn, outBytes: 256 });
    const answer = qpMailbox.decode(outBox);
    expect(answer.context).toMatchObject({ state: QpState.RTS, nextSendPsn: 0x4321, localQpn: qpn });
  });

  it('returns zeros for a QP in reset', () => {
    const { outBox } = must(bench, 'QUERY_QP', { inputModifier: qpn, outBytes: 256 });
    expect(outBox).toEqual(new Uint8Array(256));
  });
});

describe('RTS2SQD_QP', () => {
  it('IBTA 10.3.1: is reported as draining until what was begun is complete', () => {
    bringTo(QpState.RTS);
    must(bench, 'RTS2SQD_QP', { inBox: qpMailbox.encode({}), inputModifier: qpn });
    const stateOf = (): number =>
      must(bench, 'QUERY_QP', { inputModifier: qpn, outBytes: 256 }).outBox[8]! >> 4;
    bench.dataPath.busyQps.add(0);
    expect(stateOf()).toBe(QpState.SQ_DRAINING);
    bench.dataPath.busyQps.clear();
    expect(stateOf()).toBe(QpState.SQD);
    must(bench, 'SQD2RTS_QP', { inBox: qpMailbox.encode({}), inputModifier: qpn });
  });

  it('sheet 3.17: sends the drained event, if asked, when the send queue has drained', () => {
    must(bench, 'MAP_EQ', { inParam: 2 ** EventType.SQ_DRAINED, inputModifier: 4 });
    bringTo(QpState.RTS);
    bench.dataPath.busyQps.add(0);
    must(bench, 'RTS2SQD_QP', { inBox: qpMailbox.encode({}), inputModifier: 0x8000_0000 + qpn });
    bench.run(10_000);
    expect(bench.control.events.writtenCount).toBe(0);
    bench.dataPath.busyQps.clear();
    bench.run();
    const eqe = viewOf(bench.memory.read(bufferAddress(0), 32));
    expect(qpEqe.fields.type.get(eqe, 0)).toBe(EventType.SQ_DRAINED);
    expect(qpEqe.fields.qpn.get(eqe, 0)).toBe(qpn);
  });

  it('sends no drained event when the QP fails while its send queue drains', () => {
    must(bench, 'MAP_EQ', { inParam: 2 ** EventType.SQ_DRAINED, inputModifier: 4 });
    bringTo(QpState.RTS);
    bench.dataPath.busyQps.add(0);
    must(bench, 'RTS2SQD_QP', { inBox: qpMailbox.encode({}), inputModifier: 0x8000_0000 + qpn });
    bench.run(10_000);
    bench.dataPath.busyQps.clear();
    bench.dataPath.failedQps.add(0);
    bench.run();
    expect(bench.control.events.writtenCount).toBe(0);
    expect(bench.control.blocks.drains.inspect()).toEqual({ draining: [] });
  });

  it('sends no drained event when the QP is reset while its send queue drains', () => {
    const { dataPath } = bench;
    must(bench, 'MAP_EQ', { inParam: 2 ** EventType.SQ_DRAINED, inputModifier: 4 });
    bringTo(QpState.RTS);
    dataPath.busyQps.add(0);
    must(bench, 'RTS2SQD_QP', { inBox: qpMailbox.encode({}), inputModifier: 0x8000_0000 + qpn });
    // A QP in reset drains nothing; its work in flight is still in the pipelines.
    dataPath.qpIsDraining = (slot) => dataPath.busyQps.has(slot) && !dataPath.calls.includes('qpDestroyed 0');
    bench.post('2RST_QP', { inputModifier: qpn, opcodeModifier: 2 });
    bench.run(10_000);
    expect(dataPath.calls).toContain('qpDestroyed 0');
    dataPath.busyQps.clear();
    bench.run();
    expect(bench.control.events.writtenCount).toBe(0);
    expect(bench.control.blocks.drains.inspect()).toEqual({ draining: [] });
  });

  it('looks more and more seldom at a queue that drains for long, and is a thousandth late at most', () => {
    must(bench, 'MAP_EQ', { inParam: 2 ** EventType.SQ_DRAINED, inputModifier: 4 });
    bringTo(QpState.RTS);
    bench.dataPath.busyQps.add(0);
    let looks = 0;
    bench.dataPath.qpIsDraining = (slot) => ++looks > 0 && bench.dataPath.busyQps.has(slot);
    must(bench, 'RTS2SQD_QP', { inBox: qpMailbox.encode({}), inputModifier: 0x8000_0000 + qpn });
    bench.run(1e9);
    // Distances of 32 cycles, 1,024 times each and then doubled, reach 1e9 cycles after some 15,000 looks.
    expect(looks).toBeGreaterThan(14_000);
    expect(looks).toBeLessThan(16_000);
    bench.dataPath.busyQps.clear();
    bench.run(1e6 + 10_000);
    expect(bench.control.events.writtenCount).toBe(1);
  });
});

describe('CONF_SPECIAL_QP', () => {
  it('sheet 3.17: takes an aligned block of 8, and 0 to take it back', () => {
    must(bench, 'CONF_SPECIAL_QP', { inputModifier: 512 });
    expect(bench.commandSet.state.specialQpBase).toBe(512);
    expect(bench.command('CONF_SPECIAL_QP', { inputModifier: 516 }).status).toBe(BAD_PARAM);
    expect(bench.command('CONF_SPECIAL_QP', { inputModifier: 8 }).status).toBe(BAD_RESOURCE);
    must(bench, 'CONF_SPECIAL_QP', { inputModifier: 0 });
    expect(bench.commandSet.state.specialQpBase).toBe(0);
  });
});
