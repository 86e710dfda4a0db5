/**
 * The blocks of the function, and their wires: pcie-function.ts connects them between the link port and the device core. The
 * contracts of pcie-blocks.spec.ts check the blocks in the table.
 */
import type { Wires } from '../../../sim/index.ts';
import { Completer } from './completer.ts';
import { ErrorLatch } from './error-latch.ts';
import { ErrorReporting } from './error-reporting.ts';
import type { FunctionCore } from './function-core.ts';
import { FunctionEgress } from './function-egress.ts';
import { FunctionIngress, type FunctionIngressPorts } from './function-ingress.ts';
import type { BarTarget } from './function-port.ts';
import { Intx } from './intx.ts';
import { MessageOutbox } from './message-outbox.ts';
import { type MessageSender, Msix } from './msix.ts';
import { RequestDecoder, type RequestDecoderPorts } from './request-decoder.ts';

/** Neighbours of the function's blocks outside the function, and the function as a whole. */
interface Surroundings {
  readonly pcieFunction: FunctionIngressPorts['pcieFunction'] & RequestDecoderPorts['pcieFunction'];
  readonly target: BarTarget;
  readonly messageSender: MessageSender;
  readonly reads: FunctionIngressPorts['reads'];
}

/** The blocks, in the order in which their stages are added: from the output side back. */
export function makeBlocks(core: FunctionCore) {
  return {
    egress: new FunctionEgress(core),
    ingress: new FunctionIngress(core),
    completer: new Completer(core),
    decoder: new RequestDecoder(core),
    latch: new ErrorLatch(core),
    errors: new ErrorReporting(core.space),
    outbox: new MessageOutbox(core),
    msix: new Msix(core),
    intx: new Intx(core),
  };
}

export type FunctionBlocks = ReturnType<typeof makeBlocks>;

/** The wires of the blocks. */
export function functionWires(b: FunctionBlocks & Surroundings): Wires<FunctionBlocks> {
  const { pcieFunction, target, messageSender, reads } = b;
  return {
    egress: { completer: b.completer, outbox: b.outbox, msix: b.msix },
    ingress: {
      pcieFunction,
      reads,
      target,
      decoder: b.decoder,
      completer: b.completer,
      latch: b.latch,
      egress: b.egress,
    },
    decoder: {
      pcieFunction,
      target,
      msix: b.msix,
      completer: b.completer,
      errors: b.errors,
      latch: b.latch,
      egress: b.egress,
    },
    latch: { errors: b.errors },
    errors: { outbox: b.outbox },
    outbox: { intx: b.intx, egress: b.egress },
    msix: { messageSender },
  };
}
