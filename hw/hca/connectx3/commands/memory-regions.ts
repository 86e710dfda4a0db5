/**
 * Memory translation: MPT entries and MTT entries live in host pages, where the driver edits them too, so these commands
 * are DMA. Sources: interface sheet 3.15, 4.3, 5.4.
 */
import {
  CommandStatus,
  icmPageBytes,
  logPageBytesMax,
  MptStatus,
  mailboxBytes,
  mpt,
  mptStatusOffset,
  mttEntryBytes,
  writeMttHeader,
} from '../../../../abi/index.ts';
import { viewOf } from '../../../../base/index.ts';
import { type CommandRequest, demand, read, reject, type Steps, until, write } from '../../commands/index.ts';
import { KeyEntry, KeyRefusal, type KeySteps } from '../../keys/index.ts';
import { mptFormat } from '../mpt-entry.ts';
import type { DeviceState } from './device-state.ts';
import { inParamOf, readInBox, writeOutBox } from './mailboxes.ts';

const fields = mpt.fields;

/** Writes the entry into the dMPT page and makes it valid, or leaves it free if the caller passed it as free. */
export function* activateRegion(device: DeviceState, request: CommandRequest): Steps<undefined> {
  const index = request.inputModifier;
  const address = entryAddress(device, index);
  demand(index >= 2 ** device.parts.capabilities.logReservedMpts, CommandStatus.BAD_RESOURCE);
  const entry = yield* readInBox(request, mpt.sizeBytes);
  const view = viewOf(entry);
  checkObject(device, view);
  demand(!device.liveMpts.has(index), CommandStatus.BAD_RES_STATE);
  const isFree = fields.status.get(view, 0) === MptStatus.FREE;
  fields.status.set(view, 0, isFree ? MptStatus.FREE : MptStatus.VALID);
  yield* write(address, entry);
  device.liveMpts.add(index);
  device.knownMpts.add(index);
  device.parts.dataPath.mptChanged(index);
  return undefined;
}

/**
 * Rejects a length or page size beyond the device's limits; and a window if INIT_HCA has not enabled windows, if it is
 * already bound, or if its state does not match its type. A free region has no length and no page size yet.
 */
function checkObject(device: DeviceState, view: DataView): void {
  if (fields.isRegion.get(view, 0) === 0) return checkWindow(device, view);
  if (fields.status.get(view, 0) !== MptStatus.FREE) checkRegion(device, view);
}

function checkWindow(device: DeviceState, view: DataView): void {
  demand(device.profile!.memoryWindowsEnabled === 1, CommandStatus.BAD_PARAM);
  const isType2 = fields.isBoundToQp.get(view, 0) === 1;
  const isFree = fields.status.get(view, 0) === MptStatus.FREE;
  demand(isType2 === isFree, CommandStatus.BAD_PARAM);
  demand(fields.lengthBytes.get(view, 0) === 0n && fields.lkey.get(view, 0) === 0, CommandStatus.BAD_PARAM);
}

function checkRegion(device: DeviceState, view: DataView): void {
  const { logMinPageBytes, logMaxRegionBytes } = device.parts.capabilities;
  const lengthBytes = fields.lengthBytes.getNumber(view, 0);
  const isEverything = lengthBytes === 2 ** 64 || fields.length64.get(view, 0) === 1;
  demand(isEverything || lengthBytes <= 2 ** logMaxRegionBytes, CommandStatus.BAD_PARAM);
  const logPageSize = fields.logPageSize.get(view, 0);
  demand(logPageSize <= logPageBytesMax, CommandStatus.BAD_PARAM);
  const isPhysical = fields.isPhysical.get(view, 0) === 1;
  demand(isPhysical || logPageSize >= logMinPageBytes, CommandStatus.BAD_PARAM);
}

/**
 * Returns the entry to software: it stays in the page. The page tells whether the device owned it: the driver
 * re-registers a region by clearing the status there. When the command has ended the device does not access the
 * region's memory any more.
 */
export function* deactivateRegion(device: DeviceState, request: CommandRequest): Steps<undefined> {
  const { dataPath } = device.parts;
  yield* until(() => dataPath.claimMpts());
  try {
    yield* deactivate(device, request);
  } finally {
    dataPath.releaseMpts();
  }
  return undefined;
}

function* deactivate(device: DeviceState, request: CommandRequest): Steps<void> {
  const index = request.inputModifier;
  const { dataPath } = device.parts;
  const address = entryAddress(device, index);
  demand(device.knownMpts.has(index), CommandStatus.BAD_RES_STATE);
  const entry = yield* read(address, mpt.sizeBytes);
  const view = viewOf(entry);
  demand(fields.status.get(view, 0) !== MptStatus.SOFTWARE, CommandStatus.BAD_RES_STATE);
  const isRegion = fields.isRegion.get(view, 0) === 1;
  demand(!isRegion || fields.boundWindows.get(view, 0) === 0, CommandStatus.REG_BOUND);
  if (request.opcodeModifier === 0) yield* writeOutBox(request, entry.slice());
  if (!isRegion) {
    const window = new KeyEntry(index, address, entry, mptFormat);
    yield* asCommand(device, dataPath.releaseRegionOf(window));
    window.commit();
    yield* write(address, entry);
  }
  fields.status.set(view, 0, MptStatus.SOFTWARE);
  yield* write(address + mptStatusOffset, entry.subarray(mptStatusOffset, mptStatusOffset + 1));
  device.liveMpts.delete(index);
  dataPath.mptChanged(index);
  yield* outlastAccesses(device);
}

/** Carries out an operation on keys as a part of a command. */
function* asCommand(device: DeviceState, steps: KeySteps<void>): Steps<void> {
  try {
    for (let next = steps.next(); next.done !== true; ) {
      const step = next.value;
      if (step.kind === 'read') {
        next = steps.next(yield* read(step.address, step.lengthBytes));
        continue;
      }
      if (step.kind === 'write') yield* write(step.address, step.bytes);
      else yield* outlastAccesses(device);
      next = steps.next();
    }
  } catch (cause) {
    if (!(cause instanceof KeyRefusal)) throw cause;
    reject(CommandStatus.BAD_RES_STATE);
  }
}

/**
 * Ends when no access under way can reach the memory by the entries just forgotten: software may use it otherwise when the command has ended.
 */
function* outlastAccesses(device: DeviceState): Steps<void> {
  const { dataPath } = device.parts;
  dataPath.beginFence();
  if (!dataPath.isFencePassed()) yield* until(() => dataPath.isFencePassed());
}

export function* queryRegion(device: DeviceState, request: CommandRequest): Steps<undefined> {
  const address = entryAddress(device, request.inputModifier);
  demand(device.knownMpts.has(request.inputModifier), CommandStatus.BAD_RES_STATE);
  yield* writeOutBox(request, yield* read(address, mpt.sizeBytes));
  return undefined;
}

/** iPXE writes its translations by command; Linux stores them in the pages itself. */
export function* writeTranslations(device: DeviceState, request: CommandRequest): Steps<undefined> {
  const count = request.inputModifier;
  demand(count >= 1 && count <= entriesPerBox, CommandStatus.BAD_PARAM);
  const box = yield* readInBox(request, writeMttHeader.sizeBytes + count * mttEntryBytes);
  const mttOffset = Number(writeMttHeader.decode(box).mttAddress);
  for (const run of runsOf(device, mttOffset, count)) {
    const from = writeMttHeader.sizeBytes + run.offset;
    yield* write(run.address, box.subarray(from, from + run.lengthBytes));
  }
  device.parts.dataPath.translationChanged();
  return undefined;
}

/** The inverse, in the same form: in_param is the MTT address. No driver issues it; the form is ours. */
export function* readTranslations(device: DeviceState, request: CommandRequest): Steps<undefined> {
  const count = request.inputModifier;
  demand(count >= 1 && count <= entriesPerBox, CommandStatus.BAD_PARAM);
  const mttOffset = inParamOf(request);
  const runs = runsOf(device, mttOffset, count);
  const answer = new Uint8Array(writeMttHeader.sizeBytes + count * mttEntryBytes);
  writeMttHeader.encodeInto({ mttAddress: BigInt(mttOffset) }, answer);
  for (const run of runs)
    answer.set(yield* read(run.address, run.lengthBytes), writeMttHeader.sizeBytes + run.offset);
  yield* writeOutBox(request, answer);
  return undefined;
}

/**
 * Invalidates everything cached of dMPT and MTT, and waits for the end of accesses that began with it: after this
 * command Linux frees the pages of a fast registration, whose MPT entry it reclaims in the page (mlx4_fmr_unmap).
 */
export function* synchroniseTranslation(device: DeviceState): Steps<undefined> {
  device.parts.dataPath.translationChanged();
  yield* outlastAccesses(device);
  return undefined;
}

/**
 * Emulator-specific command: the driver has removed pages of on-demand regions; the command ends when no access in
 * flight can reach them.
 */
export function* invalidatePages(device: DeviceState): Steps<undefined> {
  device.parts.dataPath.pagesChanged();
  yield* outlastAccesses(device);
  return undefined;
}

/** Ours: requested pages are present, or are refused. */
export function resumePageFault(device: DeviceState, request: CommandRequest): undefined {
  demand(request.opcodeModifier <= 1, CommandStatus.BAD_PARAM);
  const isKnown = device.parts.dataPath.pagesResumed(request.inputModifier, request.opcodeModifier === 1);
  demand(isKnown, CommandStatus.BAD_RES_STATE);
  return undefined;
}

const entriesPerBox = (mailboxBytes - writeMttHeader.sizeBytes) / mttEntryBytes;

function entryAddress(device: DeviceState, index: number): number {
  demand(index < 2 ** device.profile!.logDmpts, CommandStatus.BAD_INDEX);
  const address = device.parts.icm.keyAddress(index);
  demand(address >= 0, CommandStatus.ICM_ERROR);
  return address;
}

/** Adjacent MTT entries in one ICM page. */
interface Run {
  readonly address: number;
  /** Byte offset from the first entry. */
  readonly offset: number;
  readonly lengthBytes: number;
}

function runsOf(device: DeviceState, mttOffset: number, count: number): Run[] {
  demand(mttOffset % mttEntryBytes === 0, CommandStatus.BAD_PARAM);
  const runs: Run[] = [];
  for (let offset = 0; offset < count * mttEntryBytes; ) {
    const address = device.parts.icm.translationAddress(mttOffset + offset);
    demand(address >= 0, CommandStatus.ICM_ERROR);
    const lengthBytes = Math.min(count * mttEntryBytes - offset, icmPageBytes - (address % icmPageBytes));
    runs.push({ address, offset, lengthBytes });
    offset += lengthBytes;
  }
  return runs;
}
