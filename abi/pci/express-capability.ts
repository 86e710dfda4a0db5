/**
 * The PCI Express capability of an endpoint (version 2), as a table, and the arithmetic of its encoded fields.
 */
import {
  registerBits as bits,
  keptByFunctionLevelReset as kept,
  register,
  registerBank,
  sticky,
} from '../../base/index.ts';
import { CapabilityId, capabilityHeader } from './capabilities.ts';
export const expressCapability = registerBank(
  'pciExpress',
  { sizeBytes: 0x3c, source: 'PCI Express Base Specification 3.1, 7.8' },
  {
    ...capabilityHeader(CapabilityId.pciExpress),
    capabilities: register(0x02, 2, 'PCI Express Capabilities', {
      version: bits(3, 0, 'hwInit', 'version', 2),
      portType: bits(7, 4, 'hwInit', '0: PCI Express endpoint'),
      interruptMessageNumber: bits(13, 9, 'ro', 'MSI-X vector of events of this structure: none'),
    }),
    deviceCapabilities: register(0x04, 4, 'Device Capabilities', {
      maxPayloadSupported: bits(2, 0, 'hwInit', '128 bytes × 2^n'),
      isExtendedTagSupported: bits(5, 5, 'hwInit', 'tags of 8 bits'),
      isRoleBasedErrorReporting: bits(15, 15, 'hwInit', 'role-based error reporting', 1),
      isFunctionLevelResetCapable: bits(28, 28, 'hwInit', 'function-level reset', 1),
    }),
    deviceControl: register(0x08, 2, 'Device Control', {
      correctableErrorReportingEnable: bits(0, 0, 'rw', 'ERR_COR may be sent'),
      nonFatalErrorReportingEnable: bits(1, 1, 'rw', 'ERR_NONFATAL may be sent'),
      fatalErrorReportingEnable: bits(2, 2, 'rw', 'ERR_FATAL may be sent'),
      unsupportedRequestReportingEnable: bits(3, 3, 'rw', 'unsupported requests are reported'),
      relaxedOrderingEnable: bits(4, 4, 'rw', 'requests may carry the relaxed ordering attribute', 1),
      maxPayloadSize: kept(bits(7, 5, 'rw', '128 bytes × 2^n')),
      extendedTagEnable: bits(8, 8, 'rw', 'tags of 8 bits may be used'),
      noSnoopEnable: bits(11, 11, 'rw', 'requests may carry the no snoop attribute', 1),
      maxReadRequestSize: bits(14, 12, 'rw', '128 bytes × 2^n', 2),
      initiateFunctionLevelReset: bits(15, 15, 'rw', 'writing 1 resets the function; reads 0'),
    }),
    deviceStatus: register(0x0a, 2, 'Device Status', {
      correctableErrorDetected: bits(0, 0, 'w1c', 'whether or not reporting is enabled'),
      nonFatalErrorDetected: bits(1, 1, 'w1c', 'whether or not reporting is enabled'),
      fatalErrorDetected: bits(2, 2, 'w1c', 'whether or not reporting is enabled'),
      unsupportedRequestDetected: bits(3, 3, 'w1c', 'an unsupported request was received'),
      transactionsPending: bits(5, 5, 'ro', 'non-posted requests of this function await completions'),
    }),
    linkCapabilities: register(0x0c, 4, 'Link Capabilities', {
      maxLinkSpeed: bits(3, 0, 'hwInit', '1: 2.5 GT/s, 2: 5, 3: 8, 4: 16, 5: 32'),
      maxLinkWidth: bits(9, 4, 'hwInit', 'lanes'),
      isAspmOptional: bits(22, 22, 'hwInit', 'ASPM optionality compliance', 1),
      portNumber: bits(31, 24, 'hwInit', 'port number'),
    }),
    linkControl: register(0x10, 2, 'Link Control', {
      aspmControl: kept(bits(1, 0, 'rw', 'active state power management: not modelled')),
      readCompletionBoundary: kept(bits(3, 3, 'rw', 'of the root complex; 0: 64 bytes, 1: 128')),
      commonClock: kept(bits(6, 6, 'rw', 'both ends use one reference clock')),
      extendedSynch: kept(bits(7, 7, 'rw', 'longer training sequences')),
    }),
    linkStatus: register(0x12, 2, 'Link Status', {
      currentLinkSpeed: bits(3, 0, 'hwInit', 'as trained'),
      negotiatedLinkWidth: bits(9, 4, 'hwInit', 'as trained'),
      isSlotClock: bits(12, 12, 'hwInit', 'uses the reference clock of the slot', 1),
    }),
    deviceCapabilities2: register(0x24, 4, 'Device Capabilities 2', {
      completionTimeoutRanges: bits(3, 0, 'hwInit', 'ranges A, B, C and D may be chosen', 0xf),
      isCompletionTimeoutDisableSupported: bits(4, 4, 'hwInit', 'the timeout can be switched off', 1),
    }),
    deviceControl2: register(0x28, 2, 'Device Control 2', {
      completionTimeoutValue: bits(3, 0, 'rw', 'see completionTimeoutUs'),
      completionTimeoutDisable: bits(4, 4, 'rw', 'no timeout'),
    }),
    linkCapabilities2: register(0x2c, 4, 'Link Capabilities 2', {
      supportedLinkSpeeds: bits(7, 1, 'hwInit', 'bit n: generation n + 1'),
    }),
    linkControl2: register(0x30, 2, 'Link Control 2', {
      targetLinkSpeed: sticky(bits(3, 0, 'rw', 'upper bound of the operating speed')),
    }),
  },
);

/** 128 bytes × 2^n; the reserved codes 6 and 7 count as 4096 bytes. */
export const sizeFromCode = (code: number): number => 128 << Math.min(code, 5);

/** The code of a payload or read request size; the size is 128 to 4096 and a power of two. */
export const codeOfSize = (sizeBytes: number): number => Math.log2(sizeBytes / 128);

/**
 * Upper ends of the ranges that the completion timeout value selects, in microseconds (7.8.16, table 7-24); the default range,
 * 50 µs to 50 ms, is implementation-defined and not listed.
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
