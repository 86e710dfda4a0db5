/**
 * Ports and management: INIT_PORT, CLOSE_PORT, SET_PORT, QUERY_PORT, MAD_IFC, SET_NODE. Commands of Ethernet alone are in
 * ethernet-ports.ts. Source: interface sheet 3.11–3.14.
 */
import {
  CommandStatus,
  MadIfcFlag,
  madBytes,
  PortCapability,
  PortMtu,
  portInfo,
  SetPortForm,
  setNode,
  setPortInfiniband,
} from '../../../../abi/index.ts';
import { vlCapOf } from '../../../management/index.ts';
import { type CommandRequest, demand, reject, type Steps } from '../../commands/index.ts';
import { type HcaPort, MALFORMED, SILENT } from '../../port/index.ts';
import { portReport } from './device-capabilities.ts';
import type { DeviceState } from './device-state.ts';
import { setEthernetPort } from './ethernet-ports.ts';
import { outParamOf, readInBox, writeOutBox } from './mailboxes.ts';

const portMask = 0xff;
/** Bits of the capability mask that software may change: the others tell the abilities of the port. */
const changeableCapabilities =
  PortCapability.IS_SM | PortCapability.IS_CM | PortCapability.IS_DEVICE_MANAGEMENT;

export function openPort(device: DeviceState, request: CommandRequest): undefined {
  portOf(device, request).open(device.parts.domain.cycle);
  return undefined;
}

export function closePort(device: DeviceState, request: CommandRequest): undefined {
  portOf(device, request).close(device.parts.domain.cycle);
  return undefined;
}

export function* queryPortBox(device: DeviceState, request: CommandRequest): Steps<undefined> {
  const { logGids, logPkeys } = device.parts.capabilities;
  const { isActive: isLinkUp, ethernet, linkSetting } = portOf(device, request);
  const state = { isLinkUp, logGids, logPkeys, ethernet, linkSetting };
  yield* writeOutBox(request, portReport(device.parts.capabilities, state));
  return undefined;
}

/** The form of the port's link layer; no port has a beacon. */
export function* setPort(device: DeviceState, request: CommandRequest): Steps<undefined> {
  const port = portOf(device, request);
  if (request.opcodeModifier === SetPortForm.ETHERNET) return yield* setEthernetPort(port, request);
  const isInfiniband = request.opcodeModifier === SetPortForm.INFINIBAND && port.ethernet === undefined;
  demand(isInfiniband, CommandStatus.BAD_OP);
  const wanted = setPortInfiniband.decode(yield* readInBox(request, setPortInfiniband.sizeBytes));
  const fields = portInfo.fields;
  const mtuMax = PortMtu.MTU_4096;
  if (wanted.changeMtuCap === 1) {
    demand(wanted.mtuCap >= PortMtu.MTU_256 && wanted.mtuCap <= mtuMax, CommandStatus.BAD_PARAM);
  }
  if (wanted.changeVlCap === 1) {
    demand(wanted.vlCount >= 1, CommandStatus.BAD_PARAM);
    demand(wanted.vlCount <= device.parts.capabilities.maxVls, CommandStatus.BAD_SIZE);
  }
  if (wanted.changeMtuCap === 1) fields.mtuCap.set(port.view, 0, wanted.mtuCap);
  if (wanted.changeVlCap === 1) fields.vlCap.set(port.view, 0, vlCapOf(wanted.vlCount));
  if (wanted.guid0Valid === 1) port.guids[0] = wanted.guid0;
  port.addressChanged();
  if (wanted.resetQkeyViolations === 1) fields.qkeyViolations.set(port.view, 0, 0);
  const kept = fields.capabilityMask.get(port.view, 0) & ~changeableCapabilities;
  fields.capabilityMask.set(port.view, 0, (kept | (wanted.capabilityMask & changeableCapabilities)) >>> 0);
  return undefined;
}

/** Hands one MAD to the device's own agents. */
export function* exchangeMad(device: DeviceState, request: CommandRequest): Steps<undefined> {
  const port = portOf(device, request);
  const box = yield* readInBox(request, madBytes);
  const checksMkey = (request.opcodeModifier & MadIfcFlag.NO_MKEY_CHECK) === 0;
  const handling = { portNumber: port.setup.portNumber, checksMkey, cycle: device.parts.domain.cycle };
  const response = device.parts.agents.handle(box, handling);
  if (response === MALFORMED) reject(CommandStatus.BAD_PKT);
  if (response !== SILENT && outParamOf(request) !== 0) yield* writeOutBox(request, response);
  return undefined;
}

export function* setNodeDescription(device: DeviceState, request: CommandRequest): Steps<undefined> {
  device.parts.node.description.set(setNode.decode(yield* readInBox(request, setNode.sizeBytes)).description);
  return undefined;
}

function portOf(device: DeviceState, request: CommandRequest): HcaPort {
  return device.parts.ports[(request.inputModifier & portMask) - 1] ?? reject(CommandStatus.BAD_PARAM);
}
