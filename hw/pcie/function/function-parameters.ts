/**
 * Configurable properties of the PCI function: its identity, its BARs, offsets of its capabilities, and its latencies. The PCIe
 * code itself is vendor-neutral; these defaults make it the card of the interface sheet.
 */
import { type ConfigOf, ConfigurationError, flag, number, powerOfTwo } from '../../../base/index.ts';
import type { LinkEndConfig } from '../link/index.ts';

const IDENTITY = 'connectx3-interface.md 1.1';
const BARS = 'connectx3-interface.md 1.2';
const CAPABILITIES = 'connectx3-interface.md 1.3';

export const functionParameters = {
  vendorId: number(0x15b3, 'id', [0, 0xfffe], IDENTITY, 'Vendor id.'),
  deviceId: number(0x1003, 'id', [0, 0xffff], IDENTITY, 'Device id.'),
  revisionId: number(0, 'id', [0, 0xff], IDENTITY, 'Revision.'),
  classCode: number(0x028000, 'id', [0, 0xff_ffff], IDENTITY, 'Class, subclass and programming interface.'),
  subsystemVendorId: number(0x15b3, 'id', [0, 0xffff], IDENTITY, 'Subsystem vendor id.'),
  subsystemId: number(0x0050, 'id', [0, 0xffff], IDENTITY, 'Subsystem id.'),
  interruptPin: number(1, 'pin', [1, 4], IDENTITY, 'Legacy interrupt: 1 is INTA, 4 is INTD.'),
  serialNumberHigh: number(0x0002_c903, 'id', [0, 0xffff_ffff], 'estimate', 'Serial number, upper dword.'),
  serialNumberLow: number(0x0000_0100, 'id', [0, 0xffff_ffff], 'estimate', 'Serial number, lower dword.'),

  bar0Bytes: powerOfTwo(0x10_0000, 'bytes', [0x10_0000, 2 ** 30], BARS, 'Size of BAR0, the registers.'),
  bar2Bytes: powerOfTwo(0x80_0000, 'bytes', [0x10_0000, 2 ** 30], BARS, 'Size of BAR2, the doorbell pages.'),
  bar0Prefetchable: flag(false, BARS, 'BAR0 is declared prefetchable.'),
  bar2Prefetchable: flag(true, BARS, 'BAR2 is declared prefetchable.'),

  powerManagementOffset: number(0x40, 'bytes', [0x40, 0xfc], CAPABILITIES, 'Place of power management.'),
  vpdPresent: flag(true, CAPABILITIES, 'Whether vital product data can be read.'),
  vpdOffset: number(0x48, 'bytes', [0x40, 0xfc], CAPABILITIES, 'Place of vital product data.'),
  expressOffset: number(0x60, 'bytes', [0x40, 0xfc], CAPABILITIES, 'Place of the PCI Express capability.'),
  msixOffset: number(0x9c, 'bytes', [0x40, 0xfc], CAPABILITIES, 'Place of the MSI-X capability.'),
  vendorOffset: number(0xc0, 'bytes', [0x40, 0xfc], CAPABILITIES, 'Place of the vendor capability.'),
  serialNumberOffset: number(0x148, 'bytes', [0x108, 0xffc], CAPABILITIES, 'Place of the serial number.'),
  aerOffset: number(0x154, 'bytes', [0x108, 0xffc], CAPABILITIES, 'Place of advanced error reporting.'),

  msixVectorCount: number(128, 'vectors', [1, 2048], CAPABILITIES, 'Entries of the MSI-X table.'),
  msixTableOffset: number(0x7c000, 'bytes', [0, 2 ** 30], CAPABILITIES, 'Place of the MSI-X table in BAR0.'),
  msixPendingOffset: number(
    0x7d000,
    'bytes',
    [0, 2 ** 30],
    CAPABILITIES,
    'Place of the pending bits in BAR0.',
  ),

  maxPayloadSupportedBytes: powerOfTwo(
    512,
    'bytes',
    [128, 4096],
    CAPABILITIES,
    'Largest payload it can take.',
  ),
  extendedTagSupported: flag(true, 'estimate', 'Tags of 8 bits can be used.'),
  completionTimeoutDefaultUs: number(
    10_000,
    'us',
    [50, 50_000],
    'PCI Express Base Specification 3.1, 7.8.16: at least 10 ms is recommended',
    'Completion timeout while the default range is selected.',
  ),

  mmioReadCycles: number(
    20,
    'cycles',
    [1, 10_000],
    'estimate',
    'From taking up a register read to its data.',
  ),
  configCycles: number(
    40,
    'cycles',
    [1, 10_000],
    'estimate',
    'From taking up a configuration request to its answer.',
  ),
  resetCycles: number(
    400,
    'cycles',
    [1, 2 ** 30],
    'estimate',
    'Cycles after a reset in which no request is taken.',
  ),
  registerAccessBytesMax: powerOfTwo(
    64,
    'bytes',
    [8, 128],
    'estimate',
    'Longest BAR read that is answered; longer ones are aborted.',
  ),
  requestFifoDepth: number(
    256,
    'entries',
    [2, 4096],
    'estimate',
    'Requests that may wait: at least the posted and non-posted header credits.',
  ),
} as const;

export type FunctionConfig = ConfigOf<typeof functionParameters>;

/**
 * Rejects a request fifo smaller than the credits of its port: the port promises room for that many requests.
 * @throws ConfigurationError naming the parameter
 */
export function checkFunctionConfig(config: FunctionConfig, port: LinkEndConfig): void {
  const creditCount = port.postedHeaders + port.nonPostedHeaders;
  if (config.requestFifoDepth >= creditCount) return;
  throw new ConfigurationError(
    'pcie.function.requestFifoDepth',
    config.requestFifoDepth,
    `at least the header credits of pcie.endpointPort: ${port.postedHeaders} posted and ${port.nonPostedHeaders} non-posted`,
  );
}
