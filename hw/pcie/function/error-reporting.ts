/**
 * Error reporting of the function: the bits that an error sets in Status, Device Status and the AER registers, the logged
 * header, and the message to the root complex.
 *
 *     error ─► Device Status ─► AER status ─► masked? ─► header log ─► reporting enabled? ─► ERR_COR / _NONFATAL / _FATAL
 *
 * Follows the flow chart of PCI Express Base Specification 3.1, figure 6-2, with role-based reporting: an error that the
 * standard calls advisory and whose severity is non-fatal counts as correctable. Only the first error of a set status bit is
 * logged; a later one does not change log and pointer.
 */
import {
  type aerCapability,
  CorrectableError,
  type expressCapability,
  type type0Header,
  UncorrectableError,
} from '../../../abi/pci/index.ts';
import type { PlacedBank } from '../../../base/index.ts';
import { MESSAGE_ERR_COR, MESSAGE_ERR_FATAL, MESSAGE_ERR_NONFATAL, type TlpHeader } from '../tlp/index.ts';

/** Records the errors. */
export interface ErrorRegisters {
  readonly header: PlacedBank<typeof type0Header.registers>;
  readonly express: PlacedBank<typeof expressCapability.registers>;
  readonly aer: PlacedBank<typeof aerCapability.registers>;
}

export interface ErrorReportingPorts {
  readonly outbox: {
    /** A message for the root complex. */
    addError(messageCode: number): void;
  };
}

const NO_HEADER: TlpHeader = [0, 0, 0, 0];

/**
 * Errors that are advisory if non-fatal (6.2.3.2.4): those of a completer that answers with an error status, and an unexpected
 * completion. An unsupported or poisoned posted request has no completion that would report it.
 */
export type ErrorRole = 'advisory' | 'sole';

export class ErrorReporting {
  /** Errors by AER bit number, whether or not masked. */
  readonly uncorrectableCounts = new Float64Array(32);
  readonly correctableCounts = new Float64Array(32);

  readonly #registers: ErrorRegisters;
  #outbox!: ErrorReportingPorts['outbox'];

  constructor(registers: ErrorRegisters) {
    this.#registers = registers;
  }

  connect({ outbox }: ErrorReportingPorts): void {
    this.#outbox = outbox;
  }

  /** An uncorrectable error, with the header of its TLP, if any. */
  uncorrectable(error: UncorrectableError, role: ErrorRole, header: TlpHeader = NO_HEADER): void {
    this.uncorrectableCounts[error] = this.uncorrectableCounts[error]! + 1;
    const { express, aer } = this.#registers;
    const bit = 1 << error;
    const isFatal = (aer.value('uncorrectableSeverity') & bit) !== 0;
    if (error === UncorrectableError.unsupportedRequest) {
      express.set('deviceStatus', 'unsupportedRequestDetected', 1);
    }
    if (role === 'advisory' && !isFatal) {
      this.#advisory(error, header);
      return;
    }
    express.set('deviceStatus', isFatal ? 'fatalErrorDetected' : 'nonFatalErrorDetected', 1);
    this.#log(error, header);
    if ((aer.value('uncorrectableMask') & bit) !== 0) return;
    this.#reportUncorrectable(error, isFatal);
  }

  /** A correctable error. */
  correctable(error: CorrectableError): void {
    this.correctableCounts[error] = this.correctableCounts[error]! + 1;
    const { express, aer } = this.#registers;
    express.set('deviceStatus', 'correctableErrorDetected', 1);
    aer.setBits('correctableStatus', 1 << error);
    if ((aer.value('correctableMask') & (1 << error)) !== 0) return;
    if (express.get('deviceControl', 'correctableErrorReportingEnable') === 1)
      this.#outbox.addError(MESSAGE_ERR_COR);
  }

  #advisory(error: UncorrectableError, header: TlpHeader): void {
    const advisory = CorrectableError.advisoryNonFatal;
    this.correctableCounts[advisory] = this.correctableCounts[advisory]! + 1;
    const { express, aer } = this.#registers;
    express.set('deviceStatus', 'correctableErrorDetected', 1);
    aer.setBits('correctableStatus', 1 << advisory);
    if ((aer.value('correctableMask') & (1 << advisory)) !== 0) return;
    this.#log(error, header);
    if (error === UncorrectableError.unsupportedRequest && !this.#reportsUnsupportedRequests()) return;
    if (express.get('deviceControl', 'correctableErrorReportingEnable') === 1)
      this.#outbox.addError(MESSAGE_ERR_COR);
  }

  #reportUncorrectable(error: UncorrectableError, isFatal: boolean): void {
    const { header, express } = this.#registers;
    const isSystemErrorEnabled = header.get('command', 'serrEnable') === 1;
    const enable = isFatal ? 'fatalErrorReportingEnable' : 'nonFatalErrorReportingEnable';
    const isEnabled = express.get('deviceControl', enable) === 1;
    if (error === UncorrectableError.unsupportedRequest && !this.#reportsUnsupportedRequests()) {
      if (!isSystemErrorEnabled) return;
    }
    if (!isSystemErrorEnabled && !isEnabled) return;
    if (isSystemErrorEnabled) header.set('status', 'signaledSystemError', 1);
    this.#outbox.addError(isFatal ? MESSAGE_ERR_FATAL : MESSAGE_ERR_NONFATAL);
  }

  #reportsUnsupportedRequests(): boolean {
    return this.#registers.express.get('deviceControl', 'unsupportedRequestReportingEnable') === 1;
  }

  /** Sets the status bit; sets header log and first error pointer only if they hold no earlier error. */
  #log(error: UncorrectableError, header: TlpHeader): void {
    const { aer } = this.#registers;
    const status = aer.value('uncorrectableStatus');
    const isMasked = (aer.value('uncorrectableMask') & (1 << error)) !== 0;
    const isLogFree = (status & (1 << aer.get('control', 'firstErrorPointer'))) === 0;
    if (!isMasked && isLogFree) {
      aer.set('control', 'firstErrorPointer', error);
      aer.set('headerLog0', 'value', header[0]);
      aer.set('headerLog1', 'value', header[1]);
      aer.set('headerLog2', 'value', header[2]);
      aer.set('headerLog3', 'value', header[3]);
    }
    aer.setBits('uncorrectableStatus', 1 << error);
  }
}
