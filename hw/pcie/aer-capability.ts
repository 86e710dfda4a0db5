/**
 * The advanced error reporting capability of an endpoint, as a table, and the names of the errors by bit number.
 * Bits of errors that cannot happen in this model (data link protocol, flow control, ECRC) are declared all the same:
 * software programmes masks and severities for them.
 */
import { ExtendedCapabilityId, extendedCapabilityHeader } from './capabilities.ts';
import { configBits as bits, configRegister, configStructure } from './config-register.ts';

/** Bit numbers in the uncorrectable error registers (PCI Express Base Specification 3.1, 7.10.2). */
export const UncorrectableError = {
  dataLinkProtocol: 4,
  poisonedTlp: 12,
  flowControlProtocol: 13,
  completionTimeout: 14,
  completerAbort: 15,
  unexpectedCompletion: 16,
  receiverOverflow: 17,
  malformedTlp: 18,
  ecrc: 19,
  unsupportedRequest: 20,
} as const;
export type UncorrectableError = (typeof UncorrectableError)[keyof typeof UncorrectableError];

/** Bit numbers in the correctable error registers (7.10.5). */
export const CorrectableError = {
  receiver: 0,
  badTlp: 6,
  badDllp: 7,
  replayRollover: 8,
  replayTimeout: 12,
  advisoryNonFatal: 13,
} as const;
export type CorrectableError = (typeof CorrectableError)[keyof typeof CorrectableError];

const uncorrectable = (mode: 'RWS' | 'RW1CS', fatalByDefault: 0 | 1) => ({
  dataLinkProtocol: bits(4, 4, mode, 'data link protocol error', fatalByDefault),
  poisonedTlp: bits(12, 12, mode, 'poisoned TLP received'),
  flowControlProtocol: bits(13, 13, mode, 'flow control protocol error', fatalByDefault),
  completionTimeout: bits(14, 14, mode, 'completion timeout'),
  completerAbort: bits(15, 15, mode, 'a request was completed with Completer Abort'),
  unexpectedCompletion: bits(16, 16, mode, 'no request outstanding for a completion'),
  receiverOverflow: bits(17, 17, mode, 'receiver overflow', fatalByDefault),
  malformedTlp: bits(18, 18, mode, 'malformed TLP', fatalByDefault),
  ecrc: bits(19, 19, mode, 'end-to-end checksum error'),
  unsupportedRequest: bits(20, 20, mode, 'unsupported request'),
});

const correctable = (mode: 'RWS' | 'RW1CS', advisoryMasked: 0 | 1) => ({
  receiver: bits(0, 0, mode, 'receiver error'),
  badTlp: bits(6, 6, mode, 'bad TLP'),
  badDllp: bits(7, 7, mode, 'bad DLLP'),
  replayRollover: bits(8, 8, mode, 'replay number rollover'),
  replayTimeout: bits(12, 12, mode, 'replay timer timeout'),
  advisoryNonFatal: bits(13, 13, mode, 'advisory non-fatal error', advisoryMasked),
});

const headerLogRegister = (offset: number) =>
  configRegister(offset, 4, { value: bits(31, 0, 'ROS', 'four bytes of the TLP header, first one highest') });

export const aerCapability = configStructure(
  'advancedErrorReporting',
  { sizeBytes: 0x38, source: 'PCI Express Base Specification 3.1, 7.10' },
  {
    ...extendedCapabilityHeader(ExtendedCapabilityId.advancedErrorReporting, 2),
    uncorrectableStatus: configRegister(0x04, 4, uncorrectable('RW1CS', 0)),
    uncorrectableMask: configRegister(0x08, 4, uncorrectable('RWS', 0)),
    uncorrectableSeverity: configRegister(0x0c, 4, uncorrectable('RWS', 1)),
    correctableStatus: configRegister(0x10, 4, correctable('RW1CS', 0)),
    correctableMask: configRegister(0x14, 4, correctable('RWS', 1)),
    control: configRegister(0x18, 4, {
      firstErrorPointer: bits(4, 0, 'ROS', 'bit number of the error whose header is logged'),
    }),
    headerLog0: headerLogRegister(0x1c),
    headerLog1: headerLogRegister(0x20),
    headerLog2: headerLogRegister(0x24),
    headerLog3: headerLogRegister(0x28),
  },
);
