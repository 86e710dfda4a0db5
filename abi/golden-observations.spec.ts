/** The observations of the captures' README, one test each, by their number in that README. */
import { describe, expect, test } from 'vitest';
import { fromHex, toHex } from '../base/bytes.ts';
import * as abi from './index.ts';
import { anyLayout, type HcrLine, linesOf, placeOf, readGolden } from './testing/golden.ts';
import { expectCovered } from './testing/golden-expect.ts';
import { walkWqe } from './testing/wqe-walk.ts';

const lines = readGolden();
const commands = linesOf(lines, 'hcr');
const wqes = linesOf(lines, 'wqe');
const blueFlames = linesOf(lines, 'blueflame');

const commandsOf = (op: string): HcrLine[] => commands.filter((line) => line.op === op);
const controlOf = (hex: string) => abi.controlSegment.decode(fromHex(hex));
const contextOf = (line: HcrLine) => abi.qpMailbox.decode(fromHex(line.input ?? '', 0x100)).context;

test('1: BlueFlame alternates between the two halves of a register, and then rings no doorbell', () => {
  const halfOfPage = new Map<string, number>();
  for (const line of blueFlames) {
    const register = `${line.file} ${line.page}`;
    const half = Number(line.offset) / 256;
    expect(half, placeOf(line)).toBe(1 - (halfOfPage.get(register) ?? 1));
    halfOfPage.set(register, half);
    expect(line.write_sizes.every((size) => size === 8)).toBe(true);
  }
  const files = new Set(blueFlames.map(({ file }) => file));
  expect(files.size).toBe(5);
  expect(linesOf(lines, 'send_doorbell').filter(({ file }) => files.has(file))).toEqual([]);
});

test('1: counter and QPN are in the WQE exactly if it is posted through BlueFlame', () => {
  const files = new Set(blueFlames.map(({ file }) => file));
  for (const line of wqes) {
    if (line.qp_type === abi.ServiceType.MLX) continue;
    const { qpn, wqeCounter } = controlOf(line.bytes);
    const expected = files.has(line.file) ? [line.qpn, line.index] : [0, 0];
    expect([qpn, wqeCounter], placeOf(line)).toEqual(expected);
  }
});

test('3: a QP on an SRQ and an XRC QP have 0xfc where the receive queue size would be', () => {
  for (const line of commandsOf('RST2INIT_QP')) {
    const { srqAttached, serviceType } = contextOf(line);
    const hasNoRq = srqAttached === 1 || serviceType === abi.ServiceType.XRC;
    const sizeByte = fromHex(line.input ?? '', 0x100)[abi.qpcOffsetInMailbox + 0x09];
    expect(sizeByte === 0xfc, placeOf(line)).toBe(hasNoRq);
  }
});

test('4: reset and hand-back have their opcode modifiers and no mailbox', () => {
  for (const line of commandsOf('2RST_QP')) {
    expect([line.op_mod, line.in_param]).toEqual([abi.resetOpcodeModifier.linux, '0x0']);
  }
  const handBacks = commands.filter(({ op }) => op.startsWith('HW2SW_'));
  expect(handBacks.length).toBeGreaterThan(100);
  for (const line of handBacks) expect([line.op_mod, line.out_param]).toEqual([1, '0x0']);
});

test('5: pages of a region may be larger than 4 KiB, and then begin before the region', () => {
  const regions = linesOf(lines, 'mpt').map(({ bytes }) => abi.mpt.decode(fromHex(bytes, 0x40)));
  const large = regions.filter(({ isRegion, logPageSize }) => isRegion === 1 && logPageSize > 12);
  expect(large.length).toBeGreaterThan(0);
  const startsInside = large.filter(
    ({ startAddress, logPageSize }) => startAddress % (1n << BigInt(logPageSize)) !== 0n,
  );
  expect(startsInside.length).toBeGreaterThan(0);
});

test('6: re-registration edits the entry in ICM and hands it back by clearing the status itself', () => {
  const edited = linesOf(lines, 'mpt').filter(({ source }) => source === 'icm');
  expect(edited.length).toBeGreaterThan(0);
  for (const line of edited) {
    expect(abi.mpt.decode(fromHex(line.bytes, 0x40)).status, placeOf(line)).toBe(abi.MptStatus.VALID);
    const ofFile = commands.filter(({ file, line: at }) => file === line.file && at < line.line);
    const lastOfEntry = ofFile.findLast(
      ({ op, in_mod }) => op.endsWith('_MPT') && Number(in_mod) === line.index,
    );
    expect(lastOfEntry?.op).toMatch(/HW2SW_MPT|SW2HW_MPT/);
  }
});

test('7: 200 bytes of inline data are 28 + 60 + 60 + 52', () => {
  const inlineWrites = wqes.filter(({ file }) => file === 'x-write-lat-200-inline');
  expect(inlineWrites.length).toBe(10);
  for (const line of inlineWrites) {
    const pieces = walkWqe(fromHex(line.bytes), line.qp_type).filter(({ name }) => name === 'inline');
    expect(pieces.map(({ inlineData }) => inlineData?.length)).toEqual([28, 60, 60, 52]);
    expect(pieces.map(({ offset }) => offset)).toEqual(
      abi.inlinePieces(0x20, 200).map((piece) => piece.headerOffset),
    );
  }
});

test('7: QP0 and QP1 carry their headers inline and end with a place for the ICRC', () => {
  const specials = wqes.filter(({ qp_type }) => qp_type === abi.ServiceType.MLX);
  expect(specials.length).toBe(40);
  for (const line of specials) {
    const inline = walkWqe(fromHex(line.bytes), line.qp_type).filter(({ name }) => name === 'inline');
    expect(inline.map(({ inlineData }) => inlineData?.length)).toEqual([28, 4]);
    expect(inline[1]!.inlineData).toEqual(new Uint8Array(4));
  }
  const vl15 = specials.filter(({ bytes }) => abi.mlxControlSegment.decode(fromHex(bytes)).vl15 === 1);
  expect(vl15.length).toBeGreaterThan(0);
});

describe('8: MAD_IFC', () => {
  const requests = commandsOf('MAD_IFC');

  test('requests without key checks, also for the vendor attribute 0xff90', () => {
    const kernel = requests.filter(({ file }) => file !== 'x-kernel-mads');
    const noChecks = abi.MadIfcFlag.NO_MKEY_CHECK | abi.MadIfcFlag.NO_BKEY_CHECK;
    expect(new Set(kernel.map(({ op_mod }) => op_mod))).toEqual(new Set([noChecks]));
    const attributes = requests.map(({ input }) => abi.mad.decode(fromHex(input ?? '', 0x168)).attributeId);
    expect(attributes).toContain(abi.SmpAttribute.MLX_EXTENDED_PORT_INFO);
  });

  test('carries SMPs that the layout covers, and answers whose attribute its own layout covers', () => {
    for (const line of requests) {
      const request = abi.smp.decode(fromHex(line.input ?? '', 0x168));
      if (request.managementClass === abi.MadClass.PERF_MGMT) continue;
      expectCovered(anyLayout(abi.smp), (line.input ?? '').slice(0, abi.madBytes * 2), line);
      const attribute = attributeLayouts[request.attributeId];
      expect(attribute, placeOf(line)).toBeDefined();
      const answer = abi.smp.decode(fromHex(line.device_output ?? '', abi.madBytes));
      expectCovered(attribute!, toHex(answer.data), line);
    }
  });
});

const attributeLayouts = {
  [abi.SmpAttribute.NODE_DESC]: anyLayout(abi.nodeDescription),
  [abi.SmpAttribute.NODE_INFO]: anyLayout(abi.nodeInfo),
  [abi.SmpAttribute.GUID_INFO]: anyLayout(abi.guidInfo),
  [abi.SmpAttribute.PORT_INFO]: anyLayout(abi.portInfo),
  [abi.SmpAttribute.PKEY_TABLE]: anyLayout(abi.pkeyTable),
  [abi.SmpAttribute.SL_TO_VL_TABLE]: anyLayout(abi.slToVlTable),
  [abi.SmpAttribute.MLX_EXTENDED_PORT_INFO]: anyLayout(abi.extendedPortInfo),
} as { readonly [attribute: number]: ReturnType<typeof anyLayout> };

test('9: the owner bit inverts with the 65th WQE of a queue of 64', () => {
  const wrapping = wqes.filter(({ file }) => file === 'x-sq-wrap');
  for (const line of wrapping)
    expect(controlOf(line.bytes).owner, placeOf(line)).toBe(line.index < 64 ? 0 : 1);
  expect(wrapping.filter(({ index }) => index >= 64).length).toBe(12);
});

test('9: of a list of four only the last requests a completion, and one doorbell covers them', () => {
  const listed = wqes.filter(({ file }) => file === 'x-write-bw-post-list');
  expect(listed.length).toBe(20);
  for (const line of listed) {
    const expected = line.index % 4 === 3 ? abi.completionRequested : 0;
    expect(controlOf(line.bytes).completion, placeOf(line)).toBe(expected);
  }
  const doorbells = linesOf(lines, 'send_doorbell').filter(({ file }) => file === 'x-write-bw-post-list');
  expect(doorbells.length).toBe(5);
});

test('10: XRC target QPs have bit 23 in their number', () => {
  const targets = commandsOf('RST2INIT_QP').filter(({ in_mod }) => Number(in_mod) & 0x80_0000);
  expect(targets.length).toBeGreaterThan(0);
  for (const line of targets) expect(contextOf(line).serviceType).toBe(abi.ServiceType.XRC);
});

test('11: the first command after reset has toggle 1, the next 0, and so on', () => {
  // Lines are numbered, so the toggle of a left-out command does not matter: it inverts with each command.
  const probe = commands.filter(({ file }) => file === 'a-probe').slice(0, 60);
  probe.forEach((line, at) => {
    if (at < 6) expect(line.t, placeOf(line)).toBe(1 - (at % 2));
  });
});

test('11: commands are polled until events are mapped, then tokens carry a slot in their low bits', () => {
  const probe = commands.filter(({ file }) => file === 'a-probe');
  const mapped = probe.findIndex(({ op }) => op === 'MAP_EQ');
  for (const [at, line] of probe.entries()) {
    const isPolled = Number(line.token) === abi.pollingToken;
    expect(isPolled, placeOf(line)).toBe(at <= mapped);
    expect(line.event).toBe(isPolled ? 0 : 1);
  }
});

test('MAP_EQ requests the asynchronous events of the sheet', () => {
  const [line] = commandsOf('MAP_EQ');
  expect(BigInt(line!.in_param)).toBe(abi.asyncEventMask);
});

test('INIT_HCA arranges the ICM tables as its fields state', () => {
  const [line] = commandsOf('INIT_HCA');
  const profile = abi.initHca.decode(fromHex(line!.input ?? '', 0x200));
  expect(profile).toMatchObject({
    version: 2,
    logQps: 18,
    logSrqs: 16,
    logCqs: 16,
    logEqs: 7,
    logRdmarcPerQp: 4,
    logDmpts: 19,
    logMcgEntryBytes: 10,
    logMcgHashEntries: 12,
    logMcgEntries: 13,
    udAvPortCheck: 1,
    cacheLineValid: 1,
  });
  expect([profile.dmptBase, profile.mttBase]).toEqual([0x1_1000_0000n, 0x1_1600_0000n]);
});
