/**
 * Decodes received requests: the addressed register, table or BAR, whether the function may accept the request, and its answer.
 * All of this happens at one clock edge of the ingress stage.
 *
 *     memory write    malformed? ─► BAR hit? ─► poisoned? ─► MSI-X table or device core
 *     memory read     malformed? ─► BAR hit? (else UR) ─► short enough? (else CA) ─► MSI-X table or device core
 *     configuration   function 0, in range? (else UR) ─► poisoned write? (UR) ─► configuration space ─► gateway? device core
 *
 * The checks are in the order of precedence of PCI Express Base Specification 3.1, 6.2.3.2.3; 2.3.1 defines the answer to a
 * request that fails one.
 */

import { UncorrectableError } from '../../../abi/pci/index.ts';
import type { BusAddress, Cycles } from '../../../base/index.ts';
import {
  CONFIG_READ,
  FLAG_POISONED,
  FLOAT_ADDRESS,
  PAYLOAD_OFFSET,
  REQUEST_BOUNDARY_BYTES,
  STATUS_ABORT,
  STATUS_SUCCESS,
  STATUS_UNSUPPORTED_REQUEST,
  tlpHeaderOf,
  WORD_AUX,
  WORD_DATA,
  WORD_FLAGS,
  WORD_LENGTH,
} from '../tlp/index.ts';
import { type Bars, NO_BAR } from './bars.ts';
import type { Completer } from './completer.ts';
import { CONFIG_SPACE_BYTES, type ConfigEffect, type ConfigSpace } from './config-space.ts';
import type { ErrorLatch } from './error-latch.ts';
import type { ErrorReporting, ErrorRole } from './error-reporting.ts';
import type { FunctionCore } from './function-core.ts';
import type { FunctionCounters } from './function-counters.ts';
import type { FunctionEgress } from './function-egress.ts';
import type { FunctionConfig } from './function-parameters.ts';
import type { BarTarget, FunctionPort } from './function-port.ts';
import type { Msix } from './msix.ts';

export interface RequestDecoderPorts {
  readonly pcieFunction: {
    /** A configuration write was stored and its answer queued. */
    configWritten(targetId: number, effect: ConfigEffect, cycle: Cycles): void;
  };
  /** The device core. */
  readonly target: Pick<BarTarget, 'barWrite' | 'barRead'>;
  readonly msix: Pick<Msix, 'contains' | 'write' | 'read' | 'pendingCount'>;
  readonly completer: Pick<Completer, 'nextData' | 'answer'>;
  readonly errors: Pick<ErrorReporting, 'uncorrectable'>;
  readonly latch: Pick<ErrorLatch, 'notePoisoned'>;
  readonly egress: Pick<FunctionEgress, 'wake'>;
}

const FUNCTION_NUMBER_MASK = 7;
/** Direction of an access through the gateway. */
const GATEWAY_BYTES = 4;

export class RequestDecoder {
  readonly #counters: FunctionCounters;
  readonly #port: FunctionPort;
  readonly #config: FunctionConfig;
  readonly #space: ConfigSpace;
  readonly #bars: Bars;
  readonly #gatewayBytes = new Uint8Array(GATEWAY_BYTES);
  readonly #gatewayDword = new DataView(this.#gatewayBytes.buffer);
  #ports!: RequestDecoderPorts;

  constructor({ port, config, space, bars, counters }: FunctionCore) {
    this.#port = port;
    this.#config = config;
    this.#space = space;
    this.#bars = bars;
    this.#counters = counters;
  }

  connect(ports: RequestDecoderPorts): void {
    this.#ports = ports;
  }

  /** Processes a memory write and consumes it. Returns the cycles for which the write port is occupied. */
  memoryWrite(offset: number, cycle: Cycles): number {
    this.#counters.memoryWrites++;
    const reader = this.#port.reader;
    const address = reader.floats[(offset >> 3) + FLOAT_ADDRESS]!;
    const lengthBytes = reader.words[(offset >> 2) + WORD_LENGTH]!;
    const flags = reader.words[(offset >> 2) + WORD_FLAGS]!;
    let occupiedCycles = 1;
    if (lengthBytes > this.#space.maxPayloadBytes || crossesBoundary(address, lengthBytes)) {
      this.malformed(offset);
    } else {
      const bar = this.#bars.match(address, lengthBytes);
      if (bar === NO_BAR) this.#unsupported(offset, 'sole');
      else if ((flags & FLAG_POISONED) !== 0) this.#poisoned(offset);
      else occupiedCycles = this.#barWrite(bar, offset, lengthBytes, cycle);
    }
    this.#port.consume(offset);
    return occupiedCycles;
  }

  #barWrite(bar: number, offset: number, lengthBytes: number, cycle: Cycles): number {
    const reader = this.#port.reader;
    const barOffset = this.#bars.matchedOffset;
    if (bar === 0 && this.#ports.msix.contains(barOffset)) {
      this.#ports.msix.write(barOffset, reader.bytes, offset + PAYLOAD_OFFSET, lengthBytes);
      if (this.#ports.msix.pendingCount > 0) this.#ports.egress.wake(cycle + 1);
      return 1;
    }
    return this.#ports.target.barWrite(
      bar,
      barOffset,
      reader.bytes,
      offset + PAYLOAD_OFFSET,
      lengthBytes,
      cycle,
    );
  }

  /** Processes a memory read; it is consumed when its answer leaves. */
  memoryRead(offset: number, cycle: Cycles): void {
    this.#counters.memoryReads++;
    const reader = this.#port.reader;
    const address = reader.floats[(offset >> 3) + FLOAT_ADDRESS]!;
    const lengthBytes = reader.words[(offset >> 2) + WORD_LENGTH]!;
    if (crossesBoundary(address, lengthBytes)) {
      this.malformed(offset);
      this.#port.consume(offset);
      return;
    }
    const readyCycle = cycle + this.#config.mmioReadCycles;
    const bar = this.#bars.match(address, lengthBytes);
    if (bar === NO_BAR) {
      this.#unsupported(offset, 'advisory');
      this.#answer(offset, STATUS_UNSUPPORTED_REQUEST, 0, readyCycle);
    } else if (lengthBytes > this.#config.registerAccessBytesMax) {
      this.#abort(offset);
      this.#answer(offset, STATUS_ABORT, 0, readyCycle);
    } else {
      const data = this.#ports.completer.nextData();
      const barOffset = this.#bars.matchedOffset;
      if (bar === 0 && this.#ports.msix.contains(barOffset))
        this.#ports.msix.read(barOffset, lengthBytes, data);
      else if (lengthBytes > 0) this.#ports.target.barRead(bar, barOffset, lengthBytes, data, cycle);
      // A read of no bytes, used by software to flush writes, is answered with one dword (2.2.5).
      this.#answer(offset, STATUS_SUCCESS, Math.max(lengthBytes, 1), readyCycle);
    }
  }

  /** Processes a configuration request; it is consumed when its answer leaves. */
  configRequest(offset: number, kind: number, cycle: Cycles): void {
    const reader = this.#port.reader;
    const word = offset >> 2;
    const register = reader.floats[(offset >> 3) + FLOAT_ADDRESS]!;
    const lengthBytes = reader.words[word + WORD_LENGTH]!;
    const target = reader.words[word + WORD_AUX]!;
    const isPoisoned = (reader.words[word + WORD_FLAGS]! & FLAG_POISONED) !== 0;
    const readyCycle = cycle + this.#config.configCycles;
    const isInRange = register + lengthBytes <= CONFIG_SPACE_BYTES && (register & 3) + lengthBytes <= 4;
    if (kind === CONFIG_READ) this.#counters.configReads++;
    else this.#counters.configWrites++;
    if ((target & FUNCTION_NUMBER_MASK) !== 0 || !isInRange) {
      this.#unsupported(offset, 'advisory');
      this.#answer(offset, STATUS_UNSUPPORTED_REQUEST, 0, readyCycle);
    } else if (kind === CONFIG_READ) {
      this.#configRead(offset, register, lengthBytes, cycle);
    } else if (isPoisoned) {
      this.#poisoned(offset);
      this.#answer(offset, STATUS_UNSUPPORTED_REQUEST, 0, readyCycle);
    } else {
      this.#answer(offset, STATUS_SUCCESS, 0, readyCycle);
      const value = reader.words[word + WORD_DATA]!;
      if (lengthBytes === GATEWAY_BYTES && this.#space.isGatewayData(register))
        this.#gatewayWrite(value, cycle);
      this.#ports.pcieFunction.configWritten(
        target & 0xffff,
        this.#space.write(register, lengthBytes, value),
        cycle,
      );
    }
  }

  #configRead(offset: number, register: number, lengthBytes: number, cycle: Cycles): void {
    const data = this.#ports.completer.nextData();
    if (this.#space.isGatewayData(register)) this.#gatewayRead(register & 3, lengthBytes, data, cycle);
    else for (let at = 0; at < lengthBytes; at++) data.setUint8(at, this.#space.read(register + at, 1));
    this.#answer(offset, STATUS_SUCCESS, lengthBytes, cycle + this.#config.configCycles);
  }

  /** Reads one dword of BAR0, whose registers are big-endian, for some bytes of the little-endian data register. */
  #gatewayRead(firstByte: number, lengthBytes: number, data: DataView, cycle: Cycles): void {
    const address = this.#gatewayAddress();
    if (address < 0) return;
    const dword = this.#gatewayDword;
    dword.setUint32(0, 0);
    this.#ports.target.barRead(0, address, GATEWAY_BYTES, dword, cycle);
    for (let at = 0; at < lengthBytes; at++)
      data.setUint8(at, dword.getUint8(GATEWAY_BYTES - 1 - firstByte - at));
  }

  #gatewayWrite(value: number, cycle: Cycles): void {
    const address = this.#gatewayAddress();
    if (address < 0) return;
    this.#gatewayDword.setUint32(0, value);
    this.#ports.target.barWrite(0, address, this.#gatewayBytes, 0, GATEWAY_BYTES, cycle);
  }

  /** The dword of BAR0 selected by the gateway, or -1 beyond its registers and for those of this function. */
  #gatewayAddress(): number {
    const address = (this.#space.gateway!.get('address', 'value') & ~3) >>> 0;
    return address < this.#config.bar0Bytes && !this.#ports.msix.contains(address) ? address : -1;
  }

  #answer(offset: number, status: number, lengthBytes: number, readyCycle: Cycles): void {
    this.#ports.completer.answer(offset, status, lengthBytes, readyCycle);
    this.#ports.egress.wake(readyCycle);
  }

  #unsupported(offset: number, role: ErrorRole): void {
    this.#counters.unsupportedRequests++;
    this.#ports.errors.uncorrectable(
      UncorrectableError.unsupportedRequest,
      role,
      tlpHeaderOf(this.#port.reader, offset),
    );
  }

  #abort(offset: number): void {
    this.#counters.completerAborts++;
    this.#space.header.set('status', 'signaledTargetAbort', 1);
    this.#ports.errors.uncorrectable(
      UncorrectableError.completerAbort,
      'advisory',
      tlpHeaderOf(this.#port.reader, offset),
    );
  }

  #poisoned(offset: number): void {
    this.#counters.poisonedRequests++;
    this.#ports.latch.notePoisoned(tlpHeaderOf(this.#port.reader, offset), 'request');
  }

  /** A TLP that breaks the rules of its format: logged, not answered. */
  malformed(offset: number): void {
    this.#counters.malformedRequests++;
    this.#ports.errors.uncorrectable(
      UncorrectableError.malformedTlp,
      'sole',
      tlpHeaderOf(this.#port.reader, offset),
    );
  }
}

/** No request may cross a 4 KiB boundary (2.2.7). */
function crossesBoundary(address: BusAddress, lengthBytes: number): boolean {
  return (address & (REQUEST_BOUNDARY_BYTES - 1)) + lengthBytes > REQUEST_BOUNDARY_BYTES;
}
