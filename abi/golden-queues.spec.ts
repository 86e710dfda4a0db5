import { describe, expect, test } from 'vitest';
import { fromHex, toHex } from '../base/bytes.ts';
import { passBit } from '../base/ring-index.ts';
import * as abi from './index.ts';
import { anyLayout, linesOf, placeOf, readGolden } from './testing/golden.ts';
import { expectCovered, lastBefore } from './testing/golden-expect.ts';
import { isCutByRule, rewritten, walkData, walkWqe } from './testing/wqe-walk.ts';

const lines = readGolden();

describe('every doorbell', () => {
  test('send', () => {
    for (const line of linesOf(lines, 'send_doorbell')) {
      expectCovered(anyLayout(abi.sendDoorbell), line.bytes, line);
      expect(abi.sendDoorbell.decode(fromHex(line.bytes)).qpn).toBe(line.qpn);
      expect(Number(line.offset)).toBe(abi.uarOffset.sendDoorbell);
    }
  });

  test('CQ arm', () => {
    for (const line of linesOf(lines, 'cq_arm')) {
      expectCovered(anyLayout(abi.cqArm), line.bytes, line);
      expect(abi.cqArm.decode(fromHex(line.bytes)), placeOf(line)).toEqual({
        sequenceNumber: line.sn,
        command: line.cmd,
        cqn: line.cqn,
        consumerCounter: line.ci,
      });
      expect(Number(line.offset)).toBe(abi.uarOffset.cqArm);
    }
  });

  test('EQ', () => {
    for (const line of linesOf(lines, 'eq_doorbell')) {
      expectCovered(anyLayout(abi.eqDoorbell), line.bytes, line);
      const decoded = abi.eqDoorbell.decode(fromHex(line.bytes));
      expect(decoded).toEqual({ arm: line.arm, consumerCounter: line.ci });
      expect(abi.isEqDoorbell(Number(line.offset))).toBe(true);
      expect(abi.eqNumberOfDoorbell(line.uar_page, Number(line.offset))).toBe(line.eqn);
      expect(abi.eqDoorbellOffset(line.eqn)).toBe(line.uar_page * abi.uarPageBytes + Number(line.offset));
    }
  });

  test('record', () => {
    for (const line of linesOf(lines, 'doorbell_record')) {
      const layout = line.object === 'cq' ? anyLayout(abi.cqRecord) : anyLayout(abi.receiveRecord);
      expect(line.bytes.length / 2).toBe(layout.sizeBytes);
      expectCovered(layout, line.bytes, line);
      expect(Number(line.address) % (line.object === 'cq' ? 8 : 4)).toBe(0);
    }
  });
});

describe('every work request', () => {
  const geometries = linesOf(lines, 'mtt').filter(({ object }) => object === 'qp');

  test.each(linesOf(lines, 'wqe').map((line) => [placeOf(line), line] as const))('sent: %s', (_, line) => {
    const wqe = fromHex(line.bytes);
    const segments = walkWqe(wqe, line.qp_type);
    expect(toHex(rewritten(segments, wqe.length))).toBe(line.bytes);
    const control = abi.controlSegment.decode(wqe);
    expect([control.opcode, control.ds, control.ds * 16]).toEqual([Number(line.opcode), line.ds, wqe.length]);
    const geometry = lastBefore(geometries, line, ({ num }) => num === line.qpn);
    if (geometry?.sq_log_count === undefined) return;
    expect(control.owner).toBe(passBit(line.index, geometry.sq_log_count));
    expect(line.slot_size).toBe(1 << geometry.sq_log_stride!);
  });

  test.each(linesOf(lines, 'rq_wqe').map((line) => [placeOf(line), line] as const))(
    'received: %s',
    (_, line) => {
      const wqe = fromHex(line.bytes);
      const headBytes = line.srqn === undefined ? 0 : abi.srqNextSegment.sizeBytes;
      const again = rewritten(walkData(wqe, headBytes, wqe.length), wqe.length);
      if (headBytes > 0) abi.srqNextSegment.encodeInto(abi.srqNextSegment.decode(wqe), again);
      expect(toHex(again)).toBe(line.bytes);
      expect(wqe.length).toBe(line.stride);
    },
  );
});

describe('every BlueFlame post', () => {
  // The capturing device: a UAR area of 16 MiB, registers of 512 bytes, 8 to a page (README of the captures).
  const geometry = { uarAreaBytes: 0x100_0000, registerBytes: 512, registersPerPage: 8 };
  const wqes = linesOf(lines, 'wqe');

  test.each(linesOf(lines, 'blueflame').map((line) => [placeOf(line), line] as const))('%s', (_, line) => {
    const offset = Number(line.bar2_offset);
    const head = abi.blueFlameHead.decode(fromHex(line.bytes));
    expect(abi.isBlueFlame(geometry, offset)).toBe(true);
    expect(abi.uarPageOf(geometry, offset)).toBe(line.page);
    expect(abi.offsetInBlueFlameHalf(geometry, offset)).toBe(0);
    expect(abi.blueFlameOffset(geometry, line.page, 0, Number(line.offset) / 256)).toBe(offset);
    const bytes = head.ds * 16;
    expect(line.bytes.length / 2).toBe(Math.ceil(bytes / abi.blueFlameCopyBytes) * abi.blueFlameCopyBytes);
    const wqe = wqes.find((one) => one.file === line.file && line.bytes.startsWith(one.bytes));
    expect(wqe).toMatchObject({ qpn: head.qpn, index: head.wqeCounter, ds: head.ds });
    expect(isCutByRule(walkWqe(fromHex(wqe!.bytes), wqe!.qp_type))).toBe(true);
  });
});
