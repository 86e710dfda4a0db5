/**
 * Firmware's work before an operating system runs: finds the function on a link, sizes its BARs, assigns their addresses, walks
 * its capabilities, and sets payload and read request size to values that both ends support.
 *
 *     present? ─► identity ─► capabilities ─► size BARs ─► assign ─► Device Control ─► Command (as requested)
 *
 * Everything is done by configuration reads and writes of dwords, in simulated time. 64-bit BARs get addresses from a window
 * above 4 GiB, largest first, so that natural alignment leaves no holes; 32-bit memory BARs get theirs from one below. I/O BARs
 * get none. Source: PCI Firmware Specification 3.2, 4.1; PCI Local Bus Specification 3.0, 6.2.5.1.
 */
import {
  BAR_REGISTER_COUNT,
  BAR_REGISTER_OFFSET,
  CapabilityId,
  capabilityHeader,
  codeOfSize,
  expressCapability,
  extendedCapabilityHeader,
  sizeFromCode,
  type0Header,
} from '../../../abi/pci/index.ts';
import {
  type ConfigOf,
  ConfigurationError,
  fieldInDword,
  fieldOf,
  number,
  powerOfTwo,
  roundUp,
  withField,
} from '../../../base/index.ts';

/** Configuration requests to the functions below a root port. */
export interface ConfigAccess {
  /** Reads the dword at `offset`: all ones if no function answers. `functionId` is bus, device and function. */
  readConfig32(functionId: number, offset: number): Promise<number>;
  writeConfig32(functionId: number, offset: number, value: number): Promise<void>;
}

const MIB = 2 ** 20;

export const enumerationParameters = {
  highWindowBaseMib: number(
    32_768,
    'MiB',
    [4096, 2 ** 28],
    'estimate',
    'Start of the window for 64-bit BARs.',
  ),
  highWindowMib: number(4096, 'MiB', [1, 2 ** 24], 'estimate', 'Size of the window for 64-bit BARs.'),
  lowWindowBaseMib: number(3584, 'MiB', [1, 4095], 'estimate', 'Start of the window for 32-bit BARs.'),
  lowWindowMib: number(256, 'MiB', [1, 4095], 'estimate', 'Size of the window for 32-bit BARs.'),
  maxPayloadBytes: powerOfTwo(
    256,
    'bytes',
    [128, 4096],
    'measurements.csv I-001a (lspci: MPS 256)',
    'Largest payload (MPS) that the root complex takes.',
  ),
  maxReadRequestBytes: powerOfTwo(
    512,
    'bytes',
    [128, 4096],
    'default of the register',
    'Read request size (MRRS) to set.',
  ),
} as const;

export type EnumerationConfig = ConfigOf<typeof enumerationParameters>;

/**
 * Rejects a window without room for the BARs of a function, all of 64 bits, as {@link assignBars} would assign them.
 * @throws ConfigurationError naming the parameter
 */
export function checkWindows(config: EnumerationConfig, barBytes: readonly number[]): void {
  const startAt = config.highWindowBaseMib * MIB;
  let at = startAt;
  for (const sizeBytes of barBytes.toSorted((left, right) => right - left))
    at = roundUp(at, sizeBytes) + sizeBytes;
  const neededMib = Math.ceil((at - startAt) / MIB);
  if (neededMib > config.highWindowMib)
    throw new ConfigurationError(
      'pcie.enumeration.highWindowMib',
      config.highWindowMib,
      `at least ${neededMib}: room for BARs of ${barBytes.join(' and ')} bytes`,
    );
}

/** Features enabled at the end; an operating system's driver usually does the rest. */
export type Activation = 'none' | 'memory' | 'memoryAndBusMaster';

interface AssignedBar {
  /** Bus address; 0 if none was assigned. */
  readonly address: number;
  /** 0: not implemented, or the upper half of the previous one. */
  readonly sizeBytes: number;
  readonly is64Bit: boolean;
  readonly isPrefetchable: boolean;
  readonly isIo: boolean;
}

interface FoundCapability {
  readonly id: number;
  readonly offset: number;
}

export interface EnumeratedFunction {
  readonly functionId: number;
  readonly vendorId: number;
  readonly deviceId: number;
  readonly revisionId: number;
  readonly classCode: number;
  readonly subsystemVendorId: number;
  readonly subsystemId: number;
  readonly interruptPin: number;
  /** Base address registers 0 to 5. */
  readonly bars: readonly AssignedBar[];
  readonly capabilities: readonly FoundCapability[];
  readonly extendedCapabilities: readonly FoundCapability[];
  /** Sizes as set in the function, in bytes. */
  readonly maxPayloadBytes: number;
  readonly maxReadRequestBytes: number;
  /** The link as the function reports it; 0 without a PCI Express capability. */
  readonly linkGeneration: number;
  readonly linkLanes: number;
}

/** Base address registers of a type 0 header that hold nothing. */
const NO_BAR: AssignedBar = { address: 0, sizeBytes: 0, is64Bit: false, isPrefetchable: false, isIo: false };
const NO_FUNCTION = 0xffff;
const FOUR_GIB = 2 ** 32;
/** A capability takes at least 4 bytes: longer chains have a loop in them. */
const CAPABILITY_COUNT_MAX = 48;
const EXTENDED_CAPABILITY_COUNT_MAX = 960;
const EXTENDED_CAPABILITIES_OFFSET = 0x100;

const header = type0Header.registers;
const { memorySpaceEnable, busMasterEnable } = header.command.fields;
const COMMAND_BITS: Readonly<Record<Activation, number>> = {
  none: 0,
  memory: memorySpaceEnable.mask,
  memoryAndBusMaster: memorySpaceEnable.mask | busMasterEnable.mask,
};
const { isIoSpace, type: barType, isPrefetchable: barPrefetchable, address: barAddress } = header.bar0.fields;
const BAR_TYPE_64_BIT = 2;
/** Two type bits of an I/O BAR. */
const IO_ADDRESS_MASK = ~3 >>> 0;
/** Pointers in the chain of capabilities: the two low bits are reserved. */
const POINTER_MASK = ~3;

/** The dwords that hold more than one register, as the bus reads them. */
const seen = {
  vendorId: fieldInDword(header.vendorId, header.vendorId.fields.value),
  deviceId: fieldInDword(header.deviceId, header.deviceId.fields.value),
  hasCapabilities: fieldInDword(header.status, header.status.fields.capabilitiesList),
  interruptPin: fieldInDword(header.interruptPin, header.interruptPin.fields.value),
  subsystemVendorId: fieldInDword(header.subsystemVendorId, header.subsystemVendorId.fields.value),
  subsystemId: fieldInDword(header.subsystemId, header.subsystemId.fields.value),
} as const;

/**
 * Enumerates the function `functionId` (bus × 256 + device × 8 + function).
 * @returns undefined if no function answers there
 * @throws ConfigurationError if a window is too small for the BARs
 */
export async function enumerateFunction(
  access: ConfigAccess,
  functionId: number,
  config: EnumerationConfig,
  activation: Activation,
): Promise<EnumeratedFunction | undefined> {
  const space = new ConfigView(access, functionId);
  const ids = await space.read(header.vendorId.offset);
  if (fieldOf(ids, seen.vendorId) === NO_FUNCTION) return undefined;
  await space.write(header.command.offset, 0);
  const revisionAndClass = await space.read(header.revisionId.offset);
  const subsystem = await space.read(header.subsystemVendorId.offset);
  const interrupt = await space.read(header.interruptLine.offset);
  const capabilities = await walkCapabilities(space);
  const extendedCapabilities = await walkExtendedCapabilities(space);
  const bars = await assignBars(space, config);
  const express = capabilities.find((capability) => capability.id === CapabilityId.pciExpress);
  const limits = await setLimits(space, express?.offset, config);
  await space.write(header.command.offset, COMMAND_BITS[activation]);
  return {
    functionId,
    vendorId: fieldOf(ids, seen.vendorId),
    deviceId: fieldOf(ids, seen.deviceId),
    revisionId: fieldOf(revisionAndClass, header.revisionId.fields.value),
    classCode: revisionAndClass >>> 8,
    subsystemVendorId: fieldOf(subsystem, seen.subsystemVendorId),
    subsystemId: fieldOf(subsystem, seen.subsystemId),
    interruptPin: fieldOf(interrupt, seen.interruptPin),
    bars,
    capabilities,
    extendedCapabilities,
    ...limits,
  };
}

class ConfigView {
  readonly #access: ConfigAccess;
  readonly #functionId: number;

  constructor(access: ConfigAccess, functionId: number) {
    this.#access = access;
    this.#functionId = functionId;
  }

  async read(offset: number): Promise<number> {
    return (await this.#access.readConfig32(this.#functionId, offset)) >>> 0;
  }

  write(offset: number, value: number): Promise<void> {
    return this.#access.writeConfig32(this.#functionId, offset, value >>> 0);
  }
}

async function walkCapabilities(space: ConfigView): Promise<FoundCapability[]> {
  const found: FoundCapability[] = [];
  const { capabilityId, nextPointer } = capabilityHeader(0);
  const idField = capabilityId.fields.value;
  const nextField = fieldInDword(nextPointer, nextPointer.fields.value);
  const { capabilitiesPointer, command } = header;
  const hasList = fieldOf(await space.read(command.offset), seen.hasCapabilities) === 1;
  const first = hasList ? await space.read(capabilitiesPointer.offset) : 0;
  let offset = fieldOf(first, capabilitiesPointer.fields.value) & POINTER_MASK;
  while (offset !== 0 && found.length < CAPABILITY_COUNT_MAX) {
    const dword = await space.read(offset);
    found.push({ id: fieldOf(dword, idField), offset });
    offset = fieldOf(dword, nextField) & POINTER_MASK;
  }
  return found;
}

async function walkExtendedCapabilities(space: ConfigView): Promise<FoundCapability[]> {
  const found: FoundCapability[] = [];
  const { id, next } = extendedCapabilityHeader(0, 0).header.fields;
  let offset = EXTENDED_CAPABILITIES_OFFSET;
  while (offset !== 0 && found.length < EXTENDED_CAPABILITY_COUNT_MAX) {
    const dword = await space.read(offset);
    if (dword === 0 || dword === 0xffff_ffff) break;
    found.push({ id: fieldOf(dword, id), offset });
    offset = fieldOf(dword, next) & POINTER_MASK;
  }
  return found;
}

/** Sizes every BAR, then assigns addresses, largest first. */
async function assignBars(space: ConfigView, config: EnumerationConfig): Promise<AssignedBar[]> {
  const bars = await sizeBars(space);
  const cursors = {
    high: {
      at: config.highWindowBaseMib * MIB,
      end: (config.highWindowBaseMib + config.highWindowMib) * MIB,
    },
    low: { at: config.lowWindowBaseMib * MIB, end: (config.lowWindowBaseMib + config.lowWindowMib) * MIB },
  };
  const order = bars
    .map((_, index) => index)
    .sort((left, right) => bars[right]!.sizeBytes - bars[left]!.sizeBytes);
  for (const index of order) {
    const bar = bars[index]!;
    if (bar.sizeBytes === 0 || bar.isIo) continue;
    const window = bar.is64Bit ? cursors.high : cursors.low;
    const address = roundUp(window.at, bar.sizeBytes);
    if (address + bar.sizeBytes > window.end) {
      const name = bar.is64Bit ? 'highWindowMib' : 'lowWindowMib';
      throw new ConfigurationError(name, config[name], `room for ${bar.sizeBytes} bytes of BAR ${index}`);
    }
    window.at = address + bar.sizeBytes;
    bars[index] = { ...bar, address };
    const register = BAR_REGISTER_OFFSET + 4 * index;
    await space.write(register, address % FOUR_GIB);
    if (bar.is64Bit) await space.write(register + 4, Math.floor(address / FOUR_GIB));
  }
  return bars;
}

async function sizeBars(space: ConfigView): Promise<AssignedBar[]> {
  const bars: AssignedBar[] = [];
  while (bars.length < BAR_REGISTER_COUNT) {
    const bar = await sizeBar(space, BAR_REGISTER_OFFSET + 4 * bars.length);
    bars.push(bar);
    if (bar.is64Bit) bars.push(NO_BAR);
  }
  return bars;
}

/** Writes all ones: the bits below the highest that stay zero give the size. */
async function sizeBar(space: ConfigView, register: number): Promise<AssignedBar> {
  const before = await space.read(register);
  await space.write(register, 0xffff_ffff);
  const low = await space.read(register);
  await space.write(register, before);
  const isIo = fieldOf(low, isIoSpace) === 1;
  const is64Bit = !isIo && fieldOf(low, barType) === BAR_TYPE_64_BIT;
  const lowMask = (low & (isIo ? IO_ADDRESS_MASK : barAddress.mask)) >>> 0;
  let sizeBytes = lowestBit(lowMask);
  if (is64Bit) {
    const highBefore = await space.read(register + 4);
    await space.write(register + 4, 0xffff_ffff);
    const high = await space.read(register + 4);
    await space.write(register + 4, highBefore);
    if (sizeBytes === 0) sizeBytes = lowestBit(high) * FOUR_GIB;
  }
  if (sizeBytes === 0) return NO_BAR;
  return {
    address: 0,
    sizeBytes,
    is64Bit,
    isPrefetchable: !isIo && fieldOf(low, barPrefetchable) === 1,
    isIo,
  };
}

const lowestBit = (mask: number): number => (mask & -mask) >>> 0;

async function setLimits(
  space: ConfigView,
  express: number | undefined,
  config: EnumerationConfig,
): Promise<
  Pick<EnumeratedFunction, 'maxPayloadBytes' | 'maxReadRequestBytes' | 'linkGeneration' | 'linkLanes'>
> {
  if (express === undefined) {
    return { maxPayloadBytes: 128, maxReadRequestBytes: 512, linkGeneration: 0, linkLanes: 0 };
  }
  const { deviceCapabilities, deviceControl, linkControl, linkStatus } = expressCapability.registers;
  const { maxPayloadSupported, isExtendedTagSupported } = deviceCapabilities.fields;
  const capabilities = await space.read(express + deviceCapabilities.offset);
  const control = (await space.read(express + deviceControl.offset)) & 0xffff;
  const link = await space.read(express + linkControl.offset);
  const supportedBytes = sizeFromCode(fieldOf(capabilities, maxPayloadSupported));
  const maxPayloadBytes = Math.min(supportedBytes, config.maxPayloadBytes);
  const maxReadRequestBytes = config.maxReadRequestBytes;
  const { maxPayloadSize, maxReadRequestSize, extendedTagEnable, initiateFunctionLevelReset } =
    deviceControl.fields;
  let limits = withField(control, maxReadRequestSize, codeOfSize(maxReadRequestBytes));
  limits = withField(limits, extendedTagEnable, fieldOf(capabilities, isExtendedTagSupported));
  limits = withField(limits, maxPayloadSize, codeOfSize(maxPayloadBytes));
  // The upper half is Device Status: zeros do not change its write-one-to-clear bits.
  await space.write(express + deviceControl.offset, withField(limits, initiateFunctionLevelReset, 0));
  const { currentLinkSpeed, negotiatedLinkWidth } = linkStatus.fields;
  const linkGeneration = fieldOf(link, fieldInDword(linkStatus, currentLinkSpeed));
  const linkLanes = fieldOf(link, fieldInDword(linkStatus, negotiatedLinkWidth));
  return { maxPayloadBytes, maxReadRequestBytes, linkGeneration, linkLanes };
}
