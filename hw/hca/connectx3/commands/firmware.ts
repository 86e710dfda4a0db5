/**
 * Commands that bring the device up and down: firmware area, ICM donation, INIT_HCA and CLOSE_HCA, and the queries around
 * them. Sources: interface sheet 3.5, 3.6, 3.7, 3.9, 3.10, 4.2.
 */
import {
  CommandStatus,
  icmPageBytes,
  icmTables,
  initHca,
  mapEntry,
  mapEntryCountMax,
  mcgLogEntryBytesMax,
  mcgLogEntryBytesMin,
} from '../../../../abi/index.ts';
import { highWordOf, lowWordOf, viewOf } from '../../../../base/index.ts';
import {
  type CommandRequest,
  demand,
  type OutImmediate,
  type Steps,
  until,
  wait,
} from '../../commands/index.ts';
import {
  adapterReport,
  auxcEntryBytesOf,
  capabilityReport,
  firmwareReport,
  hasFlowCounters,
  uarPageCount,
} from './device-capabilities.ts';
import { type DeviceState, type HcaProfile, SystemPhase } from './device-state.ts';
import { inParamOf, readInBox, writeOutBox } from './mailboxes.ts';

export function* queryFirmware(device: DeviceState, request: CommandRequest): Steps<undefined> {
  yield* writeOutBox(request, firmwareReport(device.parts.capabilities));
  return undefined;
}

export function* queryCapabilities(device: DeviceState, request: CommandRequest): Steps<undefined> {
  yield* writeOutBox(request, capabilityReport(device.parts.capabilities));
  return undefined;
}

export function* queryAdapterBox(_device: DeviceState, request: CommandRequest): Steps<undefined> {
  yield* writeOutBox(request, adapterReport());
  return undefined;
}

/** One chunk of donated memory. */
interface Chunk {
  readonly icmAddress: number;
  readonly dmaAddress: number;
  readonly pageCount: number;
}

/** Reads the chunks of a MAP mailbox. A chunk's size divides both its addresses. */
function* readChunks(device: DeviceState, request: CommandRequest): Steps<Chunk[]> {
  const count = request.inputModifier;
  demand(count >= 1 && count <= mapEntryCountMax, CommandStatus.BAD_PARAM);
  const box = yield* readInBox(request, count * mapEntry.sizeBytes);
  // Field by field: a boot maps hundreds of chunks.
  const { icmAddress, physicalAddress, logSize4k } = mapEntry.fields;
  const view = viewOf(box);
  const chunks: Chunk[] = [];
  for (let index = 0; index < count; index++) {
    const at = index * mapEntry.sizeBytes;
    const pageCount = 2 ** logSize4k.get(view, at);
    const chunk = {
      icmAddress: icmAddress.getNumber(view, at),
      dmaAddress: physicalAddress.getNumber(view, at),
      pageCount,
    };
    demand(pageCount <= pagesPerChunkMax, CommandStatus.BAD_PARAM);
    const chunkBytes = pageCount * icmPageBytes;
    demand(
      chunk.icmAddress % chunkBytes === 0 && chunk.dmaAddress % chunkBytes === 0,
      CommandStatus.BAD_PARAM,
    );
    chunks.push(chunk);
  }
  yield* wait(pagesOf(chunks) * device.parts.config.memoryMapPerPageCycles);
  return chunks;
}

/** 1 GiB in one entry: far more than any driver allocates at once. */
const pagesPerChunkMax = 2 ** 18;
const pagesOf = (chunks: readonly Chunk[]): number => chunks.reduce((sum, chunk) => sum + chunk.pageCount, 0);

export function* mapFirmwareArea(device: DeviceState, request: CommandRequest): Steps<undefined> {
  demand(device.phase === SystemPhase.OFF, CommandStatus.BAD_SYS_STATE);
  const chunks = yield* readChunks(device, request);
  device.parts.icm.firmwarePageCount += pagesOf(chunks);
  return undefined;
}

export function unmapFirmwareArea(device: DeviceState): undefined {
  demand(device.phase !== SystemPhase.INITIALISED, CommandStatus.BAD_SYS_STATE);
  device.parts.icm.firmwarePageCount = 0;
  device.phase = SystemPhase.OFF;
  return undefined;
}

export function runFirmware(device: DeviceState): undefined {
  const { icm, capabilities } = device.parts;
  demand(device.phase === SystemPhase.OFF, CommandStatus.BAD_SYS_STATE);
  demand(icm.firmwarePageCount >= capabilities.firmwarePages, CommandStatus.BAD_SYS_STATE);
  device.phase = SystemPhase.FIRMWARE;
  return undefined;
}

export function setIcmSize(device: DeviceState, request: CommandRequest): OutImmediate {
  const { capabilities, icm } = device.parts;
  demand(device.phase === SystemPhase.FIRMWARE, CommandStatus.BAD_SYS_STATE);
  demand(icm.auxiliaryPageCount === 0, CommandStatus.BAD_SYS_STATE);
  const sizeBytes = inParamOf(request);
  demand(sizeBytes > 0, CommandStatus.BAD_PARAM);
  demand(sizeBytes <= 2 ** capabilities.logMaxIcmBytes, CommandStatus.EXCEED_LIM);
  device.auxiliaryPagesWanted = Math.max(1, Math.ceil(sizeBytes / 2 ** capabilities.logAuxPageRatio));
  return { high: highWordOf(device.auxiliaryPagesWanted), low: lowWordOf(device.auxiliaryPagesWanted) };
}

export function* mapAuxiliary(device: DeviceState, request: CommandRequest): Steps<undefined> {
  demand(device.auxiliaryPagesWanted > 0, CommandStatus.BAD_SYS_STATE);
  const chunks = yield* readChunks(device, request);
  device.parts.icm.auxiliaryPageCount += pagesOf(chunks);
  return undefined;
}

export function unmapAuxiliary(device: DeviceState): undefined {
  demand(device.phase !== SystemPhase.INITIALISED, CommandStatus.BAD_SYS_STATE);
  device.parts.icm.auxiliaryPageCount = 0;
  device.auxiliaryPagesWanted = 0;
  return undefined;
}

/** Maps all chunks of the mailbox or none. ICM beyond the size of SET_ICM_SIZE is mapped too: Linux's EQC table runs past it. */
export function* mapIcm(device: DeviceState, request: CommandRequest): Steps<undefined> {
  const { icm, capabilities } = device.parts;
  const wanted = device.auxiliaryPagesWanted;
  demand(wanted > 0 && icm.auxiliaryPageCount >= wanted, CommandStatus.BAD_SYS_STATE);
  const chunks = yield* readChunks(device, request);
  let endBytes = 0;
  for (const { icmAddress, pageCount } of [...chunks].sort((a, b) => a.icmAddress - b.icmAddress)) {
    demand(icmAddress >= endBytes, CommandStatus.BAD_PARAM); // two chunks of the mailbox overlap
    endBytes = icmAddress + pageCount * icmPageBytes;
    demand(endBytes <= 2 ** capabilities.logMaxIcmBytes, CommandStatus.EXCEED_LIM);
    demand(icm.mappedCountIn(icmAddress, pageCount) === 0, CommandStatus.RESOURCE_BUSY);
  }
  for (const { icmAddress, dmaAddress, pageCount } of chunks) icm.map(icmAddress, dmaAddress, pageCount);
  return undefined;
}

/** When it has ended the device neither reads nor writes the pages: their memory is the host's again. */
export function* unmapIcm(device: DeviceState, request: CommandRequest): Steps<undefined> {
  const { icm, dataPath } = device.parts;
  const icmAddress = inParamOf(request);
  const pageCount = request.inputModifier;
  demand(icmAddress % icmPageBytes === 0 && pageCount > 0, CommandStatus.BAD_PARAM);
  demand(pageCount <= pagesPerChunkMax, CommandStatus.BAD_PARAM);
  demand(icm.mappedCountIn(icmAddress, pageCount) > 0, CommandStatus.ICM_ERROR);
  yield* wait(pageCount * device.parts.config.memoryMapPerPageCycles);
  icm.unmap(icmAddress, pageCount);
  if (device.phase !== SystemPhase.INITIALISED) return undefined;
  dataPath.translationChanged();
  dataPath.beginContextFence();
  if (!dataPath.isContextFencePassed()) yield* until(() => dataPath.isContextFencePassed());
  return undefined;
}

export function* initialise(device: DeviceState, request: CommandRequest): Steps<undefined> {
  const { icm } = device.parts;
  demand(device.phase === SystemPhase.FIRMWARE, CommandStatus.BAD_SYS_STATE);
  demand(icm.auxiliaryPageCount >= device.auxiliaryPagesWanted, CommandStatus.BAD_SYS_STATE);
  demand(device.auxiliaryPagesWanted > 0, CommandStatus.BAD_SYS_STATE);
  const box = yield* readInBox(request, initHca.sizeBytes);
  const profile = initHca.decode(box);
  checkProfile(device, profile);
  const places = placesOf(device, profile);
  checkPlaces(device, places);
  icm.placeTables(places);
  device.profileBytes = box.slice();
  device.profile = profile;
  device.groups.setHeadCount(2 ** profile.logMcgHashEntries);
  const isManaged = profile.deviceManagedSteering === 1;
  for (const { ethernet } of device.parts.ports) ethernet?.steering.manage(isManaged);
  device.parts.tcp?.place(profile.logTcpConnections === 0 ? 0 : 2 ** profile.logTcpConnections);
  device.phase = SystemPhase.INITIALISED;
  return undefined;
}

/**
 * Rejects every size and every mode beyond those that QUERY_DEV_CAP reports: other EQ schemes, entries larger than 32
 * bytes, strides, unicast steering, device-managed steering of InfiniBand, memory windows, UAR pages above 4 KiB.
 */
function checkProfile(device: DeviceState, profile: HcaProfile): void {
  const { capabilities } = device.parts;
  demand(profile.logQps <= capabilities.logMaxQps, CommandStatus.BAD_PARAM);
  demand(profile.logCqs <= capabilities.logMaxCqs, CommandStatus.BAD_PARAM);
  demand(profile.logSrqs <= capabilities.logMaxSrqs, CommandStatus.BAD_PARAM);
  demand(profile.logEqs <= capabilities.logMaxEqs, CommandStatus.BAD_PARAM);
  demand(profile.logDmpts <= capabilities.logMaxMpts, CommandStatus.BAD_PARAM);
  demand(profile.logRdmarcPerQp <= capabilities.logMaxResponderReads, CommandStatus.BAD_PARAM);
  if (capabilities.transport === 'iwarp')
    demand(profile.logTcpConnections <= capabilities.logMaxTcpConnections, CommandStatus.BAD_PARAM);
  checkSteering(device, profile);
  demand(profile.systemEqs === 0, CommandStatus.BAD_PARAM);
  demand(profile.counters === 0 || hasFlowCounters(capabilities), CommandStatus.BAD_PARAM);
  for (const mode of modesNotOffered) demand(profile[mode] === 0, CommandStatus.BAD_PARAM);
  demand(profile.logUarPage4k === 0, CommandStatus.BAD_PARAM);
  demand(2 ** profile.logUars <= uarPageCount(capabilities), CommandStatus.BAD_PARAM);
}

/** Linux gives its table of rules this many entries on every card (MLX4_FS_NUM_MCG). */
const ruleEntriesLogMax = 17;

/** A table of groups, or rules in its place, which ports of Ethernet have. */
function checkSteering(device: DeviceState, profile: HcaProfile): void {
  const { capabilities } = device.parts;
  const isManaged = profile.deviceManagedSteering === 1;
  demand(!isManaged || capabilities.linkLayer === 'ethernet', CommandStatus.BAD_PARAM);
  const { entryBytesLog, entriesLog } = steeringTableOf(profile);
  const entriesLogMax = isManaged ? ruleEntriesLogMax : capabilities.logMaxGroups;
  demand(entriesLog <= entriesLogMax, CommandStatus.BAD_PARAM);
  demand(profile.logMcgHashEntries <= entriesLog, CommandStatus.BAD_PARAM);
  demand(entryBytesLog >= mcgLogEntryBytesMin, CommandStatus.BAD_PARAM);
  demand(entryBytesLog <= mcgLogEntryBytesMax, CommandStatus.BAD_PARAM);
}

/** The table of groups, or of rules: the device owns either, and it fits in its place. */
const steeringTableOf = (profile: HcaProfile) =>
  profile.deviceManagedSteering === 1
    ? {
        base: profile.flowSteeringBase,
        entryBytesLog: profile.logFlowSteeringEntryBytes,
        entriesLog: profile.logFlowSteeringEntries,
      }
    : {
        base: profile.mcgBase,
        entryBytesLog: profile.logMcgEntryBytes,
        entriesLog: profile.logMcgEntries,
      };

const modesNotOffered = [
  'cqe64',
  'eqe64',
  'logEqeStrideMinus5',
  'logCqeStrideMinus5',
  'unicastSteering',
  'checksum',
  'qos',
  'rssIpFragments',
  'recoverableErrorEvents',
] as const satisfies readonly (keyof HcaProfile)[];

/**
 * Checks that every table ends within the largest ICM. INIT_HCA does not give the length of the MTT table: only its
 * base is checked, and the mapped pages bound it.
 */
function checkPlaces(device: DeviceState, places: ReturnType<typeof placesOf>): void {
  const icmBytes = 2 ** device.parts.capabilities.logMaxIcmBytes;
  for (const [name, { base, entryBytes, logEntries }] of Object.entries(places)) {
    const tableBytes = name === 'mtt' ? 0 : entryBytes * 2 ** logEntries;
    demand(base + tableBytes <= icmBytes, CommandStatus.BAD_PARAM);
  }
}

function placesOf({ parts: { capabilities } }: DeviceState, profile: HcaProfile) {
  const place = (base: bigint, entryBytes: number, logEntries: number) => ({
    base: Number(base),
    entryBytes,
    logEntries,
  });
  const { qpc, altc, rdmarc, srqc, cqc, eqc, dmpt, mtt } = icmTables;
  const steering = steeringTableOf(profile);
  return {
    qpc: place(profile.qpcBase, qpc.entryBytes, profile.logQps),
    auxc: place(
      profile.auxcBase,
      auxcEntryBytesOf(capabilities),
      capabilities.transport === 'iwarp' ? profile.logTcpConnections : profile.logQps,
    ),
    altc: place(profile.altcBase, altc.entryBytes, profile.logQps),
    rdmarc: place(profile.rdmarcBase, rdmarc.entryBytes, profile.logQps + profile.logRdmarcPerQp),
    srqc: place(profile.srqcBase, srqc.entryBytes, profile.logSrqs),
    cqc: place(profile.cqcBase, cqc.entryBytes, profile.logCqs),
    eqc: place(profile.eqcBase, eqc.entryBytes, profile.logEqs),
    dmpt: place(profile.dmptBase, dmpt.entryBytes, profile.logDmpts),
    mtt: place(profile.mttBase, mtt.entryBytes, mttLogEntriesMax),
    mcg: place(steering.base, 2 ** steering.entryBytesLog, steering.entriesLog),
  };
}

/** INIT_HCA does not give the length of the MTT table; the mapped pages bound it. */
const mttLogEntriesMax = 37;

/**
 * Stops everything, and waits for work in flight before it forgets the state: a later answer would find other contexts
 * in its place, and memory that no longer belongs to the device.
 */
export function* closeDevice(device: DeviceState): Steps<undefined> {
  const { events, dataPath } = device.parts;
  dataPath.halt();
  yield* until(() => events.isIdle && dataPath.isQuiescent());
  device.closeHca(device.parts.domain.cycle);
  return undefined;
}

/** The configuration of INIT_HCA, and the clock's frequency; zeros before INIT_HCA. */
export function* queryHca(device: DeviceState, request: CommandRequest): Steps<undefined> {
  const answer = device.profileBytes.slice();
  const view = new DataView(answer.buffer);
  initHca.fields.globalCapabilities.set(view, 0, 0);
  initHca.fields.coreClockMhz.set(view, 0, device.parts.domain.clock.frequencyMHz);
  yield* writeOutBox(request, answer);
  return undefined;
}
