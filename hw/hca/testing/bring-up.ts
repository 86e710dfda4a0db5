/**
 * Brings the device of a {@link ControlBench} up as a driver does, with a small profile, and creates queues on it.
 *
 *   ICM  0x0000_0000 QPC   0x0100_0000 CQC   0x0200_0000 SRQC   0x0300_0000 EQC   0x0400_0000 dMPT   0x0500_0000 MTT
 *   all of them mapped by one chunk of 64 pages each, onto host memory at 0x2000_0000 + ICM address
 */
import { CommandStatus } from '../../../abi/command-status.ts';
import { cqc } from '../../../abi/cqc.ts';
import { EqArmState, eqc } from '../../../abi/eqc.ts';
import { initHca } from '../../../abi/init-hca.ts';
import { mttEntry } from '../../../abi/mtt.ts';
import { PathMigration, QpState, qpMailbox, ServiceType } from '../../../abi/qpc.ts';
import { srqc } from '../../../abi/srqc.ts';
import type { Initial } from '../../../base/index.ts';
import { type CommandOptions, type CommandOutcome, ControlBench } from './control-bench.ts';

export const icmBase = {
  qpc: 0x000_0000,
  cqc: 0x100_0000,
  srqc: 0x200_0000,
  eqc: 0x300_0000,
  dmpt: 0x400_0000,
  mtt: 0x500_0000,
} as const;
/** Host address of ICM address 0. */
export const icmHostBase = 0x2000_0000;
/** Pages of one mapped chunk, as log2. */
export const chunkLogPages = 6;
const firmwareArea = 0x1000_0000;
const auxiliaryArea = 0x1100_0000;
const icmBytes = 0x600_0000;

/** First numbers that are not reserved. */
export const firstEqn = 4;
export const firstCqn = 128;
export const firstSrqn = 64;
export const firstQpn = 64;
export const firstMptIndex = 256;

/** Buffers of queues lie here, one MiB each. */
export const bufferAddress = (index: number): number => 0x4000_0000 + index * 0x10_0000;

export const profile: Initial<typeof initHca> = {
  version: 2,
  qpcBase: BigInt(icmBase.qpc),
  logQps: 16,
  logRdmarcPerQp: 4,
  cqcBase: BigInt(icmBase.cqc),
  logCqs: 16,
  srqcBase: BigInt(icmBase.srqc),
  logSrqs: 16,
  eqcBase: BigInt(icmBase.eqc),
  logEqs: 7,
  dmptBase: BigInt(icmBase.dmpt),
  memoryWindowsEnabled: 1,
  logDmpts: 16,
  mttBase: BigInt(icmBase.mtt),
  logMcgEntryBytes: 10,
  logMcgHashEntries: 12,
  logMcgEntries: 13,
  logUars: 10,
};

/** Runs a command and throws unless it ends with status 0: for the parts of a spec that are not its subject. */
export function must(
  bench: ControlBench,
  name: Parameters<ControlBench['command']>[0],
  options: CommandOptions = {},
): CommandOutcome {
  const outcome = bench.command(name, options);
  if (outcome.status !== CommandStatus.OK) throw new Error(`${name} ended with status ${outcome.status}`);
  return outcome;
}

/** Up to RUN_FW. */
export function startFirmware(bench: ControlBench): void {
  must(bench, 'MAP_FA', { inBox: bench.mapEntryBox(0, firmwareArea, 6), inputModifier: 1 });
  must(bench, 'RUN_FW');
}

/** Up to and with the donation of ICM; 0x6000000 bytes want 48 auxiliary pages. */
export function donateIcm(bench: ControlBench): void {
  const wanted = must(bench, 'SET_ICM_SIZE', { inParam: icmBytes }).out;
  must(bench, 'MAP_ICM_AUX', {
    inBox: bench.mapEntryBox(0, auxiliaryArea, Math.ceil(Math.log2(wanted))),
    inputModifier: 1,
  });
  for (const base of Object.values(icmBase)) {
    must(bench, 'MAP_ICM', {
      inBox: bench.mapEntryBox(base, icmHostBase + base, chunkLogPages),
      inputModifier: 1,
    });
  }
}

/** A device after INIT_HCA. */
export function broughtUp(...setup: ConstructorParameters<typeof ControlBench>): ControlBench {
  const bench = new ControlBench(...setup);
  startFirmware(bench);
  donateIcm(bench);
  must(bench, 'INIT_HCA', { inBox: initHca.encode(profile) });
  return bench;
}

/** Writes MTT entries for consecutive 4 KiB pages of a buffer and returns their MTT address. */
export function translate(bench: ControlBench, bufferIndex: number, pageCount: number): number {
  const mttAddress = bufferIndex * 0x800;
  for (let page = 0; page < pageCount; page++) {
    const entry = mttEntry.encode({
      pageAddress: BigInt(bufferAddress(bufferIndex) + page * 4096),
      present: 1,
    });
    bench.memory.write(icmHostBase + icmBase.mtt + mttAddress + page * 8, entry);
  }
  return mttAddress;
}

/** The context of an EQ of 2^logEntries entries in buffer `bufferIndex`, armed, interrupting by vector `vector`. */
export function eqContext(
  bench: ControlBench,
  bufferIndex: number,
  logEntries: number,
  fields: Initial<typeof eqc> = {},
): Uint8Array {
  const mttAddress = translate(bench, bufferIndex, Math.max(1, 2 ** (logEntries - 7)));
  return eqc.encode({ armState: EqArmState.ARMED, logEntries, mttAddress, ...fields });
}

/** Creates EQ `firstEqn` + bufferIndex in buffer `bufferIndex`, and returns its number. */
export function createEq(
  bench: ControlBench,
  bufferIndex: number,
  logEntries = 7,
  fields: Initial<typeof eqc> = {},
): number {
  const eqn = firstEqn + bufferIndex;
  must(bench, 'SW2HW_EQ', { inBox: eqContext(bench, bufferIndex, logEntries, fields), inputModifier: eqn });
  return eqn;
}

/** Creates a CQ of 128 entries on an EQ, in buffer `bufferIndex`, and returns its number. */
export function createCq(
  bench: ControlBench,
  bufferIndex: number,
  eqn: number,
  fields: Initial<typeof cqc> = {},
): number {
  const cqn = firstCqn + bufferIndex;
  const mttAddress = translate(bench, bufferIndex, 1);
  const inBox = cqc.encode({ logEntries: 7, uarPage: 200, eqn, mttAddress, ...fields });
  must(bench, 'SW2HW_CQ', { inBox, inputModifier: cqn });
  return cqn;
}

export function createSrq(bench: ControlBench, fields: Initial<typeof srqc> = {}): number {
  const inBox = srqc.encode({ logWqes: 8, logStride16: 2, mttAddress: 0, pd: 5, ...fields });
  must(bench, 'SW2HW_SRQ', { inBox, inputModifier: firstSrqn });
  return firstSrqn;
}

/** The mailbox of RST2INIT for an RC QP on one CQ. */
export const initMailbox = (
  cqn: number,
  fields: NonNullable<Initial<typeof qpMailbox>['context']> = {},
): Uint8Array =>
  qpMailbox.encode({
    context: {
      state: QpState.INIT,
      serviceType: ServiceType.RC,
      pathMigration: PathMigration.MIGRATED,
      pd: 5,
      sqLogCount: 6,
      sqLogStride16: 2,
      rqLogCount: 6,
      rqLogStride16: 1,
      uarPage: 200,
      sendCqn: cqn,
      receiveCqn: cqn,
      mttAddress: 0x100,
      ...fields,
    },
  });
