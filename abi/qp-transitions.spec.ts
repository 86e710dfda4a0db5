import { describe, expect, test } from 'vitest';
import { viewOf } from '../base/bytes.ts';
import { portOfScheduleQueue, scheduleQueueOf, serviceLevelOfScheduleQueue } from './address-path.ts';
import { fieldsSetBy, OptionalParameter, qpTransitions } from './qp-transitions.ts';
import { mtuBytesOf, PathMtu, QpState, qpc } from './qpc.ts';
import { copyQpcFields } from './qpc-fields.ts';

const maskOf = (...bits: readonly number[]): number => bits.reduce((mask, bit) => mask | (1 << bit), 0);

describe('the transition table', () => {
  test.each([
    ['RST2INIT_QP', QpState.RST, QpState.INIT],
    ['INIT2RTR_QP', QpState.INIT, QpState.RTR],
    ['RTR2RTS_QP', QpState.RTR, QpState.RTS],
    ['SQERR2RTS_QP', QpState.SQER, QpState.RTS],
    ['RTS2SQD_QP', QpState.RTS, QpState.SQD],
  ] as const)('%s leads from %i to %i only', (name, from, to) => {
    expect(qpTransitions[name]).toMatchObject({ from: [from], to });
  });

  test('lets any state be reset or moved into error', () => {
    expect(qpTransitions['2RST_QP'].from).toHaveLength(8);
    expect(qpTransitions['2ERR_QP'].from).toContain(QpState.RST);
  });

  test('selects by the mask the fields that the transition does not require', () => {
    const fields = fieldsSetBy('RTS2RTS_QP', maskOf(OptionalParameter.RRE, OptionalParameter.QKEY));
    expect(fields).toEqual(['remoteReadEnabled', 'qkey']);
    expect(fieldsSetBy('2ERR_QP', 0xffff_ffff)).toEqual([]);
  });

  test('replaces a path without P_Key index and ACK timeout, which have bits of their own', () => {
    const fields = fieldsSetBy('RTS2RTS_QP', maskOf(OptionalParameter.PRIMARY_ADDR_PATH));
    expect(fields).toContain('primaryPath.remoteLid');
    expect(fields).not.toContain('primaryPath.pkeyIndex');
    expect(fields).not.toContain('primaryPath.ackTimeout');
    expect(fieldsSetBy('RTS2RTS_QP', maskOf(OptionalParameter.ACK_TIMEOUT))).toEqual([
      'primaryPath.ackTimeout',
    ]);
  });

  test('keeps the link type when RTR2RTS sets the ACK timeout in the same byte', () => {
    const stored = qpc.encode({ primaryPath: { linkType: 1, remoteLid: 7 }, pd: 9 });
    const given = qpc.encode({ primaryPath: { ackTimeout: 14 }, nextSendPsn: 0x123456, retryCount: 7 });
    copyQpcFields(fieldsSetBy('RTR2RTS_QP', 0), viewOf(given), 0, viewOf(stored), 0);
    const after = qpc.decode(stored);
    expect(after.primaryPath).toMatchObject({ linkType: 1, ackTimeout: 14, remoteLid: 7 });
    expect(after).toMatchObject({ pd: 9, nextSendPsn: 0x123456, retryCount: 7 });
  });

  test('reads every field of RST2INIT from the mailbox, including wide ones and bytes of a path', () => {
    const given = qpc.encode({ mttAddress: 0x11_0000_0088, doorbellRecordAddress: 0x1000n, localQpn: 0x209 });
    const stored = qpc.encode({});
    copyQpcFields(fieldsSetBy('RST2INIT_QP', 0), viewOf(given), 0, viewOf(stored), 0);
    expect(stored).toEqual(given);
    const path = qpc.encode({ primaryPath: { remoteGid: new Uint8Array(16).fill(0xfe) } });
    copyQpcFields(fieldsSetBy('INIT2RTR_QP', 0), viewOf(path), 0, viewOf(stored), 0);
    expect(qpc.decode(stored).primaryPath.remoteGid).toEqual(new Uint8Array(16).fill(0xfe));
  });
});

test('the schedule queue selects port and service level', () => {
  expect(scheduleQueueOf(1, 0)).toBe(0x83); // what the stock driver writes
  expect(scheduleQueueOf(2, 5)).toBe(0x83 | 0x40 | (5 << 2));
  expect(portOfScheduleQueue(0x83)).toBe(1);
  expect(portOfScheduleQueue(0xc3)).toBe(2);
  expect(serviceLevelOfScheduleQueue(scheduleQueueOf(1, 9))).toBe(9);
});

test('MTU codes are powers of two from 256 bytes', () => {
  expect([PathMtu.MTU_256, PathMtu.MTU_4096].map(mtuBytesOf)).toEqual([256, 4096]);
});
