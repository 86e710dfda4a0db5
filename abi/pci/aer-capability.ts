/**
 * The advanced error reporting capability of an endpoint, as a table, and the names of the errors by bit number. Bits of errors
 * that cannot happen in this model (data link protocol, flow control, ECRC) are also declared, because software programs their
 * masks and severities.
 */
import { register, registerBank, registerBits, sticky } from '../../base/index.ts';
import { ExtendedCapabilityId, extendedCapabilityHeader } from './capabilities.ts';

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

const bit = (number: number, access: 'rw' | 'w1c', meaning: string, resetValue = 0) =>
  sticky(registerBits(number, number, access, meaning, resetValue));

const uncorrectable = (access: 'rw' | 'w1c', fatalByDefault: 0 | 1) => {
  const error = UncorrectableError;
  return {
    dataLinkProtocol: bit(error.dataLinkProtocol, access, 'data link protocol error', fatalByDefault),
    poisonedTlp: bit(error.poisonedTlp, access, 'poisoned TLP received'),
    flowControlProtocol: bit(
      error.flowControlProtocol,
      access,
      'flow control protocol error',
      fatalByDefault,
    ),
    completionTimeout: bit(error.completionTimeout, access, 'completion timeout'),
    completerAbort: bit(error.completerAbort, access, 'a request was completed with Completer Abort'),
    unexpectedCompletion: bit(error.unexpectedCompletion, access, 'no request outstanding for a completion'),
    receiverOverflow: bit(error.receiverOverflow, access, 'receiver overflow', fatalByDefault),
    malformedTlp: bit(error.malformedTlp, access, 'malformed TLP', fatalByDefault),
    ecrc: bit(error.ecrc, access, 'end-to-end checksum error'),
    unsupportedRequest: bit(error.unsupportedRequest, access, 'unsupported request'),
  };
};

const correctable = (access: 'rw' | 'w1c', advisoryMasked: 0 | 1) => {
  const error = CorrectableError;
  return {
    receiver: bit(error.receiver, access, 'receiver error'),
    badTlp: bit(error.badTlp, access, 'bad TLP'),
    badDllp: bit(error.badDllp, access, 'bad DLLP'),
    replayRollover: bit(error.replayRollover, access, 'replay number rollover'),
    replayTimeout: bit(error.replayTimeout, access, 'replay timer timeout'),
    advisoryNonFatal: bit(error.advisoryNonFatal, access, 'advisory non-fatal error', advisoryMasked),
  };
};

const headerLogRegister = (offset: number) => {
  const meaning = 'four bytes of the TLP header, first one highest';
  return register(offset, 4, 'Header Log', { value: sticky(registerBits(31, 0, 'ro', meaning)) });
};

export const aerCapability = registerBank(
  'advancedErrorReporting',
  { sizeBytes: 0x38, source: 'PCI Express Base Specification 3.1, 7.10' },
  {
    ...extendedCapabilityHeader(ExtendedCapabilityId.advancedErrorReporting, 2),
    uncorrectableStatus: register(0x04, 4, 'Uncorrectable Error Status', uncorrectable('w1c', 0)),
    uncorrectableMask: register(0x08, 4, 'Uncorrectable Error Mask', uncorrectable('rw', 0)),
    uncorrectableSeverity: register(0x0c, 4, 'Uncorrectable Error Severity', uncorrectable('rw', 1)),
    correctableStatus: register(0x10, 4, 'Correctable Error Status', correctable('w1c', 0)),
    correctableMask: register(0x14, 4, 'Correctable Error Mask', correctable('rw', 1)),
    control: register(0x18, 4, 'Advanced Error Capabilities and Control', {
      firstErrorPointer: sticky(registerBits(4, 0, 'ro', 'bit number of the error whose header is logged')),
    }),
    headerLog0: headerLogRegister(0x1c),
    headerLog1: headerLogRegister(0x20),
    headerLog2: headerLogRegister(0x24),
    headerLog3: headerLogRegister(0x28),
  },
);
