import { describe, expect, it } from 'vitest';
import { mtuBytesOf, QpState, qpc, qpcOffsetInMailbox } from '../../abi/qpc.ts';
import { linesOf, placeOf, readGolden } from '../../abi/testing/golden.ts';
import { fromHex } from '../../base/bytes.ts';
import { QpTable } from './qp-table.ts';

function loaded(bytes: Uint8Array, previousState: number = QpState.RST): { qps: QpTable; slot: number } {
  const qps = new QpTable(2);
  const slot = qps.allocate(0x40);
  qps.bytes.set(bytes, qps.offsetOf(slot));
  qps.create(slot);
  qps.load(slot, previousState);
  return { qps, slot };
}

describe('QpTable', () => {
  it('places the queues as real drivers lay them out: the larger stride first, the send queue where they are equal', () => {
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
      expect(qps.sqOffset[slot]! - first, placeOf(line)).toBe(mtt.sq_offset);
      if (qps.hasReceiveQueue[slot] === 1 && typeof mtt.rq_offset === 'number')
        expect(qps.rqOffset[slot]! - first, placeOf(line)).toBe(mtt.rq_offset);
      compared++;
    }
    expect(compared).toBeGreaterThan(5);
  });

  it('decodes what the transitions configure', () => {
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
    expect([qps.mtuBytes[slot], qps.messageBytesMax[slot], qps.pd[slot], qps.remoteQpn[slot]]).toEqual([
      mtuBytesOf(4),
      2 ** 30,
      0x1234,
      0xabcdef,
    ]);
    // 4.096 us × 2^14.
    expect(qps.ackTimeoutPs[slot]).toBe(67_108_864_000);
    expect([qps.ackRequestEvery[slot], qps.readsOutstandingMax[slot], qps.readResourcesMax[slot]]).toEqual([
      256, 8, 4,
    ]);
    expect([qps.retryCountMax[slot], qps.rnrRetryCountMax[slot], qps.minRnrNakCode[slot]]).toEqual([
      7, 5, 12,
    ]);
    expect([qps.remoteRights[slot], qps.remoteLid[slot], qps.bufferPageBytes[slot]]).toEqual([
      5,
      77,
      2 ** 21,
    ]);
  });

  it('takes each PSN at the transition that sets it, and no other', () => {
    const bytes = qpc.encode({ state: QpState.RTR, nextReceivePsn: 0x123456, nextSendPsn: 0x654321 });
    const { qps, slot } = loaded(bytes, QpState.INIT);
    expect([qps.expectedPsn[slot], qps.nextPsn[slot]]).toEqual([0x123456, 0]);
    qpc.fields.state.set(qps.view, qps.offsetOf(slot), QpState.RTS);
    qps.load(slot, QpState.RTR);
    expect([qps.nextPsn[slot], qps.lastAckedPsn[slot]]).toEqual([0x654321, 0x654320]);
    qps.nextPsn[slot] = 5;
    qps.expectedPsn[slot] = 6;
    qps.load(slot, QpState.RTS);
    expect([qps.nextPsn[slot], qps.expectedPsn[slot]]).toEqual([5, 6]);
  });

  it('writes the live fields into the context, and only those', () => {
    const { qps, slot } = loaded(qpc.encode({ state: QpState.RTS, pd: 9, retryCount: 7, rnrRetryCount: 3 }));
    qps.state[slot] = QpState.ERR;
    qps.nextPsn[slot] = 0xfffffe;
    qps.lastAckedPsn[slot] = 0xfffffd;
    qps.ssn[slot] = 17;
    qps.expectedPsn[slot] = 18;
    qps.msn[slot] = 19;
    qps.sqCounter[slot] = 0xffff;
    qps.retriesLeft[slot] = 5;
    qps.rnrRetriesLeft[slot] = 3;
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
});
