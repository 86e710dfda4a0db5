/**
 * HCR, the command register: software posts one command here and reads its result.
 *
 *   software writes dword 6 with GO ──> posted (GO reads 1) ──> latched by the processor
 *      polled:   GO reads 1 until the command has ended; then status, out_param, GO = 0
 *      by event: GO reads 0 as soon as the command is latched; the result arrives as an EQE
 *
 * Promises: T keeps the posted value and is 0 after reset, which satisfies both Linux (busy when T equals its own
 * toggle, which starts at 1) and iPXE (free when T equals its copy, which starts at 0). A write while GO is set is
 * ignored and counted. Source: interface sheet 2.2.
 */

import { hcr, hcrGoOffset } from '../../../../abi/index.ts';
import { type Cycles, viewOf } from '../../../../base/index.ts';
import type { BlockState } from '../../../../sim/index.ts';
import type { CommandRequest, CommandSource, OutImmediate } from '../../commands/index.ts';
import type { CommandSetPorts } from '../../host-interface/index.ts';
import { type ProtocolViolations, violation } from '../../statistics/index.ts';

export interface CommandRegisterPorts {
  readonly processor: CommandSetPorts['processor'];
}

export class CommandRegister implements CommandSource {
  readonly #bytes = new Uint8Array(hcr.sizeBytes);
  readonly #view = viewOf(this.#bytes);
  readonly #violations: ProtocolViolations;
  #processor!: CommandRegisterPorts['processor'];
  /** A command has been posted and not yet latched. */
  #isPosted = false;

  constructor(violations: ProtocolViolations) {
    this.#violations = violations;
  }

  connect({ processor }: CommandRegisterPorts): void {
    this.#processor = processor;
  }

  get isPosted(): boolean {
    return this.#isPosted;
  }

  /** Returns one big-endian dword, as software reads it. */
  readDword(offset: number): number {
    return this.#view.getUint32(offset);
  }

  /** Software writes one big-endian dword. */
  writeDword(offset: number, value: number, cycle: Cycles): void {
    if (hcr.fields.go.get(this.#view, 0) === 1) {
      this.#violations.count(violation.commandWhileBusy);
      return;
    }
    this.#view.setUint32(offset, value);
    if (offset !== hcrGoOffset || hcr.fields.go.get(this.#view, 0) === 0) return;
    this.#isPosted = true;
    this.#processor.posted(cycle);
  }

  /** Passes the posted command to the processor; for a command by event, the register is free again at once. */
  latch(): CommandRequest {
    const view = this.#view;
    const fields = hcr.fields;
    this.#isPosted = false;
    const byEvent = fields.event.get(view, 0) === 1;
    const request = {
      opcode: fields.opcode.get(view, 0),
      opcodeModifier: fields.opcodeModifier.get(view, 0),
      inputModifier: fields.inputModifier.get(view, 0),
      inParamHigh: fields.inParam.getHighWord(view, 0),
      inParamLow: fields.inParam.getLowWord(view, 0),
      outParamHigh: fields.outParam.getHighWord(view, 0),
      outParamLow: fields.outParam.getLowWord(view, 0),
      token: fields.token.get(view, 0),
      byEvent,
    };
    if (byEvent) fields.go.set(view, 0, 0);
    return request;
  }

  /** A polled command has ended. */
  complete(status: number, result: OutImmediate | undefined): void {
    if (result !== undefined) {
      this.#view.setUint32(hcr.fields.outParam.wordOffset, result.high);
      this.#view.setUint32(hcr.fields.outParam.wordOffset + 4, result.low);
    }
    hcr.fields.status.set(this.#view, 0, status);
    hcr.fields.go.set(this.#view, 0, 0);
  }

  /** See Block.inspect. */
  inspect(): BlockState {
    const dwords = Array.from({ length: hcr.sizeBytes / 4 }, (_, index) => this.#view.getUint32(4 * index));
    return { isPosted: this.#isPosted, dwords };
  }

  reset(): void {
    this.#bytes.fill(0);
    this.#isPosted = false;
  }
}
