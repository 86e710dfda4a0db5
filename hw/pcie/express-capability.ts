/**
 * The PCI Express capability of an endpoint (version 2), as a table, and the arithmetic of its encoded fields.
 */
import { CapabilityId, capabilityHeader } from './capabilities.ts';
import {
  configBits as bits,
  configRegister,
  configStructure,
  keptByFunctionLevelReset as kept,
} from './config-register.ts';

export const expressCapability = configStructure(
  'pciExpress',
  { sizeBytes: 0x3c, source: 'PCI Express Base Specification 3.1, 7.8' },
  {
    ...capabilityHeader(CapabilityId.pciExpress),
    capabilities: configRegister(0x02, 2, {
      version: bits(3, 0, 'HwInit', 'version', 2),
      portType: bits(7, 4, 'HwInit', '0: PCI Express endpoint'),
      interruptMessageNumber: bits(13, 9, 'RO', 'MSI-X vector of events of this structure: none'),
    }),
    deviceCapabilities: configRegister(0x04, 4, {
      maxPayloadSupported: bits(2, 0, 'HwInit', '128 bytes × 2^n'),
      isExtendedTagSupported: bits(5, 5, 'HwInit', 'tags of 8 bits'),
      isRoleBasedErrorReporting: bits(15, 15, 'HwInit', 'role-based error reporting', 1),
      isFunctionLevelResetCapable: bits(28, 28, 'HwInit', 'function-level reset', 1),
    }),
    deviceControl: configRegister(0x08, 2, {
      correctableErrorReportingEnable: bits(0, 0, 'RW', 'ERR_COR may be sent'),
      nonFatalErrorReportingEnable: bits(1, 1, 'RW', 'ERR_NONFATAL may be sent'),
      fatalErrorReportingEnable: bits(2, 2, 'RW', 'ERR_FATAL may be sent'),
      unsupportedRequestReportingEnable: bits(3, 3, 'RW', 'unsupported requests are reported'),
      relaxedOrderingEnable: bits(4, 4, 'RW', 'requests may carry the relaxed ordering attribute', 1),
      maxPayloadSize: kept(bits(7, 5, 'RW', '128 bytes × 2^n')),
      extendedTagEnable: bits(8, 8, 'RW', 'tags of 8 bits may be used'),
      noSnoopEnable: bits(11, 11, 'RW', 'requests may carry the no snoop attribute', 1),
      maxReadRequestSize: bits(14, 12, 'RW', '128 bytes × 2^n', 2),
      initiateFunctionLevelReset: bits(15, 15, 'RW', 'writing 1 resets the function; reads 0'),
    }),
    deviceStatus: configRegister(0x0a, 2, {
      correctableErrorDetected: bits(0, 0, 'RW1C', 'whether or not reporting is enabled'),
      nonFatalErrorDetected: bits(1, 1, 'RW1C', 'whether or not reporting is enabled'),
      fatalErrorDetected: bits(2, 2, 'RW1C', 'whether or not reporting is enabled'),
      unsupportedRequestDetected: bits(3, 3, 'RW1C', 'an unsupported request was received'),
      transactionsPending: bits(5, 5, 'RO', 'non-posted requests of this function await completions'),
    }),
    linkCapabilities: configRegister(0x0c, 4, {
      maxLinkSpeed: bits(3, 0, 'HwInit', '1: 2.5 GT/s, 2: 5, 3: 8, 4: 16, 5: 32'),
      maxLinkWidth: bits(9, 4, 'HwInit', 'lanes'),
      isAspmOptional: bits(22, 22, 'HwInit', 'ASPM optionality compliance', 1),
      portNumber: bits(31, 24, 'HwInit', 'port number'),
    }),
    linkControl: configRegister(0x10, 2, {
      aspmControl: kept(bits(1, 0, 'RW', 'active state power management: not modelled')),
      readCompletionBoundary: kept(bits(3, 3, 'RW', 'of the root complex; 0: 64 bytes, 1: 128')),
      commonClock: kept(bits(6, 6, 'RW', 'both ends use one reference clock')),
      extendedSynch: kept(bits(7, 7, 'RW', 'longer training sequences')),
    }),
    linkStatus: configRegister(0x12, 2, {
      currentLinkSpeed: bits(3, 0, 'HwInit', 'as trained'),
      negotiatedLinkWidth: bits(9, 4, 'HwInit', 'as trained'),
      isSlotClock: bits(12, 12, 'HwInit', 'uses the reference clock of the slot', 1),
    }),
    deviceCapabilities2: configRegister(0x24, 4, {
      completionTimeoutRanges: bits(3, 0, 'HwInit', 'ranges A, B, C and D may be chosen', 0xf),
      isCompletionTimeoutDisableSupported: bits(4, 4, 'HwInit', 'the timeout can be switched off', 1),
    }),
    deviceControl2: configRegister(0x28, 2, {
      completionTimeoutValue: bits(3, 0, 'RW', 'see completionTimeoutUs'),
      completionTimeoutDisable: bits(4, 4, 'RW', 'no timeout'),
    }),
    linkCapabilities2: configRegister(0x2c, 4, {
      supportedLinkSpeeds: bits(7, 1, 'HwInit', 'bit n: generation n + 1'),
    }),
    linkControl2: configRegister(0x30, 2, {
      targetLinkSpeed: kept(bits(3, 0, 'RWS', 'upper bound of the operating speed')),
    }),
  },
);

/** 128 bytes × 2^n; the reserved codes 6 and 7 count as 4096 bytes. */
export const sizeFromCode = (code: number): number => 128 << Math.min(code, 5);

/** The code of a payload or read request size; the size is 128 to 4096 and a power of two. */
export const codeOfSize = (sizeBytes: number): number => Math.log2(sizeBytes / 128);

/**
 * Upper ends of the ranges that the completion timeout value selects, in microseconds (7.8.16, table 7-24); the
 * default range, 50 µs to 50 ms, is the implementation's to place and not listed.
 */
const timeoutUsByValue: Readonly<Record<number, number>> = {
  1: 100,
  2: 10_000,
  5: 55_000,
  6: 210_000,
  9: 900_000,
  10: 3_500_000,
  13: 13_000_000,
  14: 64_000_000,
};

/** Completion timeout in microseconds for the encoded value; `defaultUs` for 0 and for reserved values. */
export const completionTimeoutUs = (value: number, defaultUs: number): number =>
  timeoutUsByValue[value] ?? defaultUs;
