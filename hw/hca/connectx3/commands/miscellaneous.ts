/** Commands without an object: NOP, health check, static configuration, diagnostics, sensing. Source: interface sheet 3.8, 3.19. */
import {
  CommandStatus,
  diagnosticReport,
  ModStatCfgForm,
  modStatCfg,
  PortType,
} from '../../../../abi/index.ts';
import { highWordOf, lowWordOf } from '../../../../base/index.ts';
import { type CommandRequest, demand, type OutImmediate, reject, type Steps } from '../../commands/index.ts';
import type { DeviceState } from './device-state.ts';
import { writeOutBox } from './mailboxes.ts';

/** Does nothing and completes: software's test that events and interrupts arrive. */
export function doNothing(): undefined {
  return undefined;
}

/**
 * Executes MOD_STAT_CFG: form 0 requests the smallest page size, which is the present one; form 2 returns the physical
 * port ID.
 */
export function* configureStatically(device: DeviceState, request: CommandRequest): Steps<undefined> {
  if (request.opcodeModifier === ModStatCfgForm.SET_PAGE_SIZE) return undefined;
  demand(request.opcodeModifier === ModStatCfgForm.PORT_ID, CommandStatus.BAD_OP);
  const portNumber = (request.inputModifier >>> 8) & 0xff;
  const port = device.parts.ports[portNumber - 1] ?? reject(CommandStatus.BAD_PARAM);
  const guid = port.guids[0]!;
  const { nodeGuid } = device.parts.node;
  yield* writeOutBox(
    request,
    modStatCfg.encode({
      portGuidHigh: highWordOf(guid),
      portGuidLow: lowWordOf(guid),
      nodeGuidHigh: highWordOf(nodeGuid),
      nodeGuidLow: lowWordOf(nodeGuid),
    }),
  );
  return undefined;
}

const diagnosticQuery = 2;

/** Reports diagnostic counters since the last reset: those of the device, or those of the port that carries packets. */
export function* reportDiagnostics(device: DeviceState, request: CommandRequest): Steps<undefined> {
  demand(request.opcodeModifier === diagnosticQuery, CommandStatus.BAD_OP);
  demand(request.inputModifier <= device.parts.ports.length, CommandStatus.BAD_PARAM);
  yield* writeOutBox(request, diagnosticReport.encode(device.parts.dataPath.diagnostics));
  return undefined;
}

/** Reports the link layer at the other end of the cable: that of the port. */
export function sensePort(device: DeviceState, request: CommandRequest): OutImmediate {
  const port = device.parts.ports[request.inputModifier - 1] ?? reject(CommandStatus.BAD_PARAM);
  return { high: 0, low: port.ethernet === undefined ? PortType.INFINIBAND : PortType.ETHERNET };
}
