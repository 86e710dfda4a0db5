/**
 * The configuration space of an endpoint: header and capability chain assembled from their tables, and the effects of writes on
 * the function.
 *
 *     header 00 ─ 40 PM ─ 48 VPD ─ 60 Express ─ 9c MSI-X ─ c0 vendor      100 ARI ─ 148 serial number ─ 154 AER
 *
 * Promises: reads and writes obey the declared access modes byte by byte; the cached facts (`isMemoryEnabled`,
 * `maxPayloadBytes` …) are right after every write and reset. A write returns its request to the function besides storing bits:
 * a function-level reset, or the reset of returning from D3hot.
 */
import {
  aerCapability,
  alternativeRoutingIdCapability,
  BAR_REGISTER_OFFSET,
  codeOfSize,
  completionTimeoutUs,
  expressCapability,
  msixCapability,
  powerManagementCapability,
  registerGateway,
  serialNumberCapability,
  sizeFromCode,
  type0Header,
  vendorCapability,
  vitalProductDataCapability,
} from '../../../abi/pci/index.ts';
import { ConfigurationError, type PlacedBank, RegisterFile, type ResetKind } from '../../../base/index.ts';
import type { BlockState } from '../../../sim/index.ts';
import type { FunctionConfig } from './function-parameters.ts';
import { VitalProductData } from './vital-product-data.ts';

/** The function's link: for the link registers. */
export interface LinkIdentity {
  /** 1 to 5. */
  readonly generation: number;
  readonly lanes: number;
}

/** Offset of a capability, by its parameter. */
type PlaceName = {
  [Name in keyof FunctionConfig]: Name extends `${string}Offset` ? Name : never;
}[keyof FunctionConfig];
type Places = readonly (readonly [name: PlaceName, sizeBytes: number])[];

/** Capabilities follow the header, extended ones follow that of alternative routing IDs (PCIe 7.9.2). */
const HEADER_END = 0x40;
const EXTENDED_START = 0x100;
const EXTENDED_FREE = EXTENDED_START + alternativeRoutingIdCapability.sizeBytes;

/** @throws ConfigurationError that names a capability outside its region, or one that overlaps another */
function checkPlaces(config: FunctionConfig): void {
  const vpd: Places = config.vpdPresent ? [['vpdOffset', vitalProductDataCapability.sizeBytes]] : [];
  const places: Places = [
    ['powerManagementOffset', powerManagementCapability.sizeBytes],
    ...vpd,
    ['expressOffset', expressCapability.sizeBytes],
    ['msixOffset', msixCapability.sizeBytes],
    ['vendorOffset', vendorCapability.sizeBytes],
  ];
  const extended: Places = [
    ['serialNumberOffset', serialNumberCapability.sizeBytes],
    ['aerOffset', aerCapability.sizeBytes],
  ];
  checkApart(config, places, HEADER_END, EXTENDED_START);
  checkApart(config, extended, EXTENDED_FREE, CONFIG_SPACE_BYTES);
}

function checkApart(config: FunctionConfig, places: Places, from: number, to: number): void {
  for (const [name, sizeBytes] of places) {
    const start = config[name];
    if (start % 4 !== 0 || start < from || start + sizeBytes > to)
      throw new ConfigurationError(name, start, `a multiple of 4 from ${from} to ${to - sizeBytes}`);
    const other = places.find(
      ([otherName, otherBytes]) =>
        otherName !== name && start < config[otherName] + otherBytes && config[otherName] < start + sizeBytes,
    );
    if (other !== undefined)
      throw new ConfigurationError(
        name,
        start,
        `${sizeBytes} bytes apart from the ${other[1]} at ${other[0]} (${config[other[0]]})`,
      );
  }
}

/** Requests of a configuration write to the function. */
export type ConfigEffect = 'none' | 'functionLevelReset' | 'powerUpReset';

export const CONFIG_SPACE_BYTES = 4096;

/** Power states. */
export const D0 = 0;
const D3_HOT = 3;
const BAR_TYPE_64_BIT = 2;

export class ConfigSpace {
  readonly header: PlacedBank<typeof type0Header.registers>;
  readonly powerManagement: PlacedBank<typeof powerManagementCapability.registers>;
  readonly express: PlacedBank<typeof expressCapability.registers>;
  readonly msix: PlacedBank<typeof msixCapability.registers>;
  readonly aer: PlacedBank<typeof aerCapability.registers>;
  /** Undefined if the function has none. */
  readonly gateway: PlacedBank<typeof registerGateway.registers> | undefined;

  /** BARs are decoded: memory space enabled, in D0. */
  isMemoryEnabled = false;
  /** The function may issue memory requests: bus mastering enabled, in D0. */
  isBusMasterEnabled = false;
  /** Payload limit for sending and receiving, in bytes. */
  maxPayloadBytes = 128;
  maxReadRequestBytes = 512;
  isRelaxedOrderingEnabled = true;
  /** Outstanding non-posted requests that its tags can distinguish. */
  tagCountMax = 32;
  /** Infinity if switched off. */
  completionTimeoutPs = 0;

  readonly #config: FunctionConfig;
  readonly #file = new RegisterFile(CONFIG_SPACE_BYTES);
  readonly #vpd: VitalProductData | undefined;

  /** @param gatewayAddress offset of the register gateway, undefined for none */
  constructor(config: FunctionConfig, link: LinkIdentity, gatewayAddress?: number) {
    this.#config = config;
    checkPlaces(config);
    const file = this.#file;
    this.header = file.place(type0Header, 0);
    this.powerManagement = file.place(powerManagementCapability, config.powerManagementOffset);
    this.#vpd = config.vpdPresent ? new VitalProductData(file, config.vpdOffset) : undefined;
    this.express = file.place(expressCapability, config.expressOffset);
    this.msix = file.place(msixCapability, config.msixOffset);
    this.gateway = gatewayAddress === undefined ? undefined : file.place(registerGateway, gatewayAddress);
    const vendor = file.place(vendorCapability, config.vendorOffset);
    this.#identify();
    this.#declareBar(0, config.bar0Bytes, config.bar0Prefetchable);
    this.#declareBar(2, config.bar2Bytes, config.bar2Prefetchable);
    this.#declareExpress(link);
    this.#declareMsix();
    const vpd = this.#vpd === undefined ? [] : [this.#vpd.registers];
    this.#linkCapabilities([this.powerManagement, ...vpd, this.express, this.msix, vendor]);
    this.aer = this.#placeExtended();
    this.#refresh();
  }

  /** Reads 1, 2 or 4 bytes, little-endian. */
  read(offset: number, lengthBytes: number): number {
    return this.#file.read(offset, lengthBytes);
  }

  /** Software's write of 1 to 4 bytes within one dword. */
  write(offset: number, lengthBytes: number, value: number): ConfigEffect {
    const stateBefore = this.powerState;
    this.#file.write(offset, lengthBytes, value);
    this.#vpd?.afterWrite(offset, lengthBytes);
    const state = this.powerState;
    if (state !== D0 && state !== D3_HOT) {
      // A write of an unsupported state is discarded (Power Management Interface Specification 1.2, 3.2.4).
      this.powerManagement.set('controlStatus', 'powerState', stateBefore);
    }
    if (this.express.get('deviceControl', 'initiateFunctionLevelReset') === 1) {
      this.express.set('deviceControl', 'initiateFunctionLevelReset', 0);
      return 'functionLevelReset';
    }
    this.#refresh();
    return stateBefore === D3_HOT && this.powerState === D0 ? 'powerUpReset' : 'none';
  }

  /** Whether an access is to the gateway's data register. */
  isGatewayData(register: number): boolean {
    return this.gateway !== undefined && (register & ~3) === this.gateway.offsetOf('data');
  }

  reset(kind: ResetKind): void {
    this.#file.reset(kind);
    this.#refresh();
  }

  /** See Block.inspect: the nonzero dwords, by their offsets. */
  inspect(): BlockState {
    const dwords = Array.from({ length: CONFIG_SPACE_BYTES / 4 }, (_, index) =>
      this.#file.stored(4 * index, 4),
    );
    return Object.fromEntries(
      dwords.flatMap((value, index) => (value === 0 ? [] : [[4 * index, value >>> 0]])),
    );
  }

  /** 0 for D0, 3 for D3hot. */
  get powerState(): number {
    return this.powerManagement.get('controlStatus', 'powerState');
  }

  get isMsixEnabled(): boolean {
    return this.msix.get('control', 'enable') === 1;
  }

  get isMsixFunctionMasked(): boolean {
    return this.msix.get('control', 'functionMask') === 1;
  }

  /** Address in a pair of base address registers, without the type bits. */
  barAddress(bar: number): number {
    const low = this.#file.stored(BAR_REGISTER_OFFSET + 4 * bar, 4);
    const high = this.#file.stored(BAR_REGISTER_OFFSET + 4 * bar + 4, 4);
    return high * 2 ** 32 + ((low & ~0xf) >>> 0);
  }

  #refresh(): void {
    const { header, express } = this;
    const isOn = this.powerState === D0;
    this.isMemoryEnabled = isOn && header.get('command', 'memorySpaceEnable') === 1;
    this.isBusMasterEnabled = isOn && header.get('command', 'busMasterEnable') === 1;
    this.maxPayloadBytes = sizeFromCode(express.get('deviceControl', 'maxPayloadSize'));
    this.maxReadRequestBytes = sizeFromCode(express.get('deviceControl', 'maxReadRequestSize'));
    this.isRelaxedOrderingEnabled = express.get('deviceControl', 'relaxedOrderingEnable') === 1;
    this.tagCountMax = express.get('deviceControl', 'extendedTagEnable') === 1 ? 256 : 32;
    const timeoutUs = completionTimeoutUs(
      express.get('deviceControl2', 'completionTimeoutValue'),
      this.#config.completionTimeoutDefaultUs,
    );
    const isTimeoutOff = express.get('deviceControl2', 'completionTimeoutDisable') === 1;
    this.completionTimeoutPs = isTimeoutOff ? Number.POSITIVE_INFINITY : timeoutUs * 1_000_000;
  }

  #identify(): void {
    const { header } = this;
    const config = this.#config;
    header.initialise('vendorId', 'value', config.vendorId);
    header.initialise('deviceId', 'value', config.deviceId);
    header.initialise('revisionId', 'value', config.revisionId);
    header.initialise('programmingInterface', 'value', config.classCode & 0xff);
    header.initialise('classCode', 'value', config.classCode >> 8);
    header.initialise('subsystemVendorId', 'value', config.subsystemVendorId);
    header.initialise('subsystemId', 'value', config.subsystemId);
    header.initialise('interruptPin', 'value', config.interruptPin);
  }

  #declareBar(bar: 0 | 2, sizeBytes: number, isPrefetchable: boolean): void {
    this.header.initialise(bar === 0 ? 'bar0' : 'bar2', 'type', BAR_TYPE_64_BIT);
    this.header.initialise(bar === 0 ? 'bar0' : 'bar2', 'isPrefetchable', isPrefetchable ? 1 : 0);
    const offset = BAR_REGISTER_OFFSET + 4 * bar;
    this.#file.setWritable(offset, ~(sizeBytes - 1) >>> 0);
  }

  #declareExpress(link: LinkIdentity): void {
    const { express } = this;
    const config = this.#config;
    express.initialise(
      'deviceCapabilities',
      'maxPayloadSupported',
      codeOfSize(config.maxPayloadSupportedBytes),
    );
    express.initialise('deviceCapabilities', 'isExtendedTagSupported', config.extendedTagSupported ? 1 : 0);
    if (!config.extendedTagSupported) express.forbidWrites('deviceControl', 'extendedTagEnable');
    express.initialise('linkCapabilities', 'maxLinkSpeed', link.generation);
    express.initialise('linkCapabilities', 'maxLinkWidth', link.lanes);
    express.initialise('linkStatus', 'currentLinkSpeed', link.generation);
    express.initialise('linkStatus', 'negotiatedLinkWidth', link.lanes);
    express.initialise('linkCapabilities2', 'supportedLinkSpeeds', (1 << link.generation) - 1);
    express.initialise('linkControl2', 'targetLinkSpeed', link.generation);
  }

  #declareMsix(): void {
    const { msix } = this;
    const config = this.#config;
    msix.initialise('control', 'tableSize', config.msixVectorCount - 1);
    msix.initialise('table', 'offset', config.msixTableOffset / 8);
    msix.initialise('pendingBits', 'offset', config.msixPendingOffset / 8);
  }

  /** Chains the capabilities in the order of their offsets. */
  #linkCapabilities(chain: readonly { readonly base: number }[]): void {
    const { offset, fields } = powerManagementCapability.registers.nextPointer;
    const bases = chain.map(({ base }) => base).sort((left, right) => left - right);
    this.header.initialise('capabilitiesPointer', 'value', bases[0]!);
    bases.forEach((base, index) => {
      this.#file.storeInitial(base + offset, fields.value.mask, bases[index + 1] ?? 0);
    });
  }

  /** The extended chain must begin at 0x100 (7.9.2), so an alternative routing-ID capability is there. */
  #placeExtended(): PlacedBank<typeof aerCapability.registers> {
    const config = this.#config;
    const file = this.#file;
    const first = file.place(alternativeRoutingIdCapability, 0x100);
    const serial = file.place(serialNumberCapability, config.serialNumberOffset);
    const aer = file.place(aerCapability, config.aerOffset);
    serial.initialise('low', 'value', config.serialNumberLow);
    serial.initialise('high', 'value', config.serialNumberHigh);
    first.initialise('header', 'next', Math.min(serial.base, aer.base));
    serial.initialise('header', 'next', serial.base < aer.base ? aer.base : 0);
    aer.initialise('header', 'next', aer.base < serial.base ? serial.base : 0);
    return aer;
  }
}
