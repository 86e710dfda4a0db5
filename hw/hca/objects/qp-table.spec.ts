import { describe, expect, it } from 'vitest';
import { mtuBytesOf, QpState, qpc, qpcOffsetInMailbox } from '../../../abi/qpc.ts';
import { linesOf, placeOf, readGolden } from '../../../abi/testing/golden.ts';
import { fromHex } from '../../../base/bytes.ts';
import { IbtaStates } from '../ibta/state/ibta-states.ts';
import { infinibandQpContext } from '../testing/contexts.ts';
import { QpTable, SEGMENTS_MAX } from './qp-table.ts';

const idle = { slotsGrown: () => undefined };
const idleUsers = {
  ...{ flusher: idle, keys: idle, pageFaults: idle, receives: idle },
  ...{ requester: idle, requestTransport: idle, responses: idle, wqeFetch: idle },
};

function loaded(bytes: Uint8Array, previousState: number = QpState.RST) {
  const qps = new QpTable(2, infinibandQpContext);
  const states = new IbtaStates(1);
  qps.connect({ ...idleUsers, transport: states });
  const slot = qps.allocate(0x40);
  qps.bytes.set(bytes, qps.offsetOf(slot));
  qps.create(slot);
  qps.load(slot, previousState);
  return { qps, slot, sequences: states.rows[slot]! };
}

describe('QpTable', () => {
  it('sheet 6.1: places the queues as real drivers lay them out: the larger stride first, the send queue where they are equal', () => {
    const golden = readGolden();
    const mtts = linesOf(golden, 'mtt').filter(
      ({ object, sq_offset }) => object === 'qp' && sq_offset !== undefined,
    );
    const inits = linesOf(golden, 'hcr').filter(
      ({ op, input, status }) => op === 'RST2INIT_QP' && input !== undefined && status === 0,
    );
    let compared = 0;
    for (const line of inits) {
      const context = fromHex(line.input!, 0x100).slice(
        qpcOffsetInMailbox,
        qpcOffsetInMailbox + qpc.sizeBytes,
      );
      const fields = qpc.decode(context);
      const mtt = mtts.findLast(
        ({ file, line: at, num }) => file === line.file && at < line.line && num === Number(line.in_mod),
      );
      if (mtt === undefined || mtt.sq_offset === null || mtt.sq_offset === undefined) continue;
      const { qps, slot } = loaded(context);
      const first = fields.pageOffset64 * 64;
      expect(qps.rows[slot]!.sqOffset - first, placeOf(line)).toBe(mtt.sq_offset);
      if (qps.rows[slot]!.hasReceiveQueue === 1 && typeof mtt.rq_offset === 'number')
        expect(qps.rows[slot]!.rqOffset - first, placeOf(line)).toBe(mtt.rq_offset);
      compared++;
    }
    expect(compared).toBeGreaterThan(5);
  });

  it('sheet 5.1: decodes what the transitions configure', () => {
    const { qps, slot } = loaded(
      qpc.encode({
        state: QpState.RTS,
        pathMtu: 4,
        logMaxMessage: 30,
        pd: 0x1234,
        remoteQpn: 0xabcdef,
        primaryPath: { remoteLid: 77, ackTimeout: 14 },
        ackRequestFrequency: 8,
        logMaxRequesterReads: 3,
        logMaxResponderReads: 2,
        retryCount: 7,
        rnrRetryCount: 5,
        minRnrNak: 12,
        remoteReadEnabled: 1,
        remoteAtomicEnabled: 1,
        logPageSize4k: 9,
      }),
    );
    expect([
      qps.rows[slot]!.mtuBytes,
      qps.rows[slot]!.messageBytesMax,
      qps.rows[slot]!.pd,
      qps.rows[slot]!.remoteQpn,
    ]).toEqual([mtuBytesOf(4), 2 ** 30, 0x1234, 0xabcdef]);
    expect(qps.rows[slot]!.ackTimeoutCode).toBe(14);
    expect([
      qps.rows[slot]!.ackRequestEvery,
      qps.rows[slot]!.readsOutstandingMax,
      qps.rows[slot]!.readResourcesMax,
    ]).toEqual([256, 8, 4]);
    expect([
      qps.rows[slot]!.retryCountMax,
      qps.rows[slot]!.rnrRetryCountMax,
      qps.rows[slot]!.minRnrNakCode,
    ]).toEqual([7, 5, 12]);
    expect([
      qps.rows[slot]!.remoteRights,
      qps.rows[slot]!.remoteLid,
      qps.rows[slot]!.bufferPageBytes,
    ]).toEqual([5, 77, 2 ** 21]);
  });

  it('sheet 3.17: takes each PSN at the transition that sets it, and no other', () => {
    const bytes = qpc.encode({ state: QpState.RTR, nextReceivePsn: 0x123456, nextSendPsn: 0x654321 });
    const { qps, slot, sequences } = loaded(bytes, QpState.INIT);
    expect([sequences.expectedPsn, sequences.nextPsn]).toEqual([0x123456, 0]);
    qpc.fields.state.set(qps.view, qps.offsetOf(slot), QpState.RTS);
    qps.load(slot, QpState.RTR);
    expect([sequences.nextPsn, sequences.lastAckedPsn]).toEqual([0x654321, 0x654320]);
    sequences.nextPsn = 5;
    sequences.expectedPsn = 6;
    qps.load(slot, QpState.RTS);
    expect([sequences.nextPsn, sequences.expectedPsn]).toEqual([5, 6]);
  });

  it('sheet 5.1: writes the live fields into the context, and only those', () => {
    const { qps, slot, sequences } = loaded(
      qpc.encode({ state: QpState.RTS, pd: 9, retryCount: 7, rnrRetryCount: 3 }),
    );
    qps.rows[slot]!.state = QpState.ERR;
    sequences.nextPsn = 0xfffffe;
    sequences.lastAckedPsn = 0xfffffd;
    sequences.ssn = 17;
    sequences.expectedPsn = 18;
    sequences.msn = 19;
    qps.rows[slot]!.sqCounter = 0xffff;
    qps.rows[slot]!.retriesLeft = 5;
    qps.rows[slot]!.rnrRetriesLeft = 3;
    qps.sync(slot);
    const at = qps.offsetOf(slot);
    expect(qpc.decode(qps.bytes.slice(at, at + qpc.sizeBytes))).toMatchObject({
      state: QpState.ERR,
      pd: 9,
      retryCount: 7,
      nextSendPsn: 0xfffffe,
      lastAckedPsn: 0xfffffd,
      ssn: 17,
      nextReceivePsn: 18,
      receiveMsn: 19,
      sqWqeCounter: 0xffff,
      currentRetry: 2,
      currentRnrRetry: 0,
    });
  });

  it('has places for the scatter lists of QPs that take receives, which stay theirs, and none for others', () => {
    const qps = new QpTable(4096, infinibandQpContext);
    const slots = Array.from({ length: 4096 }, (_, number) => qps.allocate(number));
    expect(qps.segmentKey.length).toBe(0);
    const receivers = slots.filter((slot) => slot % 80 === 3).map((slot) => qps.rows[slot]!);
    for (const [at, pair] of receivers.entries()) {
      const last = qps.scatterListOf(pair) + SEGMENTS_MAX - 1;
      qps.segmentAddress[last] = at;
    }
    expect(receivers.map((pair) => qps.segmentAddress[qps.scatterListOf(pair) + SEGMENTS_MAX - 1])).toEqual(
      receivers.map((_, at) => at),
    );
    expect(qps.segmentKey.length).toBeLessThanOrEqual(2 * receivers.length * SEGMENTS_MAX);
  });
});
