/** Follows CQEs and EQEs as the device writes them. A completion event counts for its CQ; a command event ends its command. */
import {
  CqeOpcode,
  commandEqe,
  completionEqe,
  cqErrorEqe,
  cqe,
  cqeBytes,
  EventType,
  eqe,
  eqeBytes,
  errorCqe,
  fatalWarningEqe,
  PortManagementChange,
  portChangeEqe,
  portInfoChangeEqe,
  qpEqe,
  ReceiveOpcode,
  ServiceType,
  slToVlChangeEqe,
  srqEqe,
  tableChangeEqe,
  timestampCqe,
  wqeOpcodeRows,
} from '../abi/index.ts';
import { mask24, viewOf } from '../base/index.ts';
import type { CommandRegister } from './follow/command-register.ts';
import type { DeviceView } from './follow/device-view.ts';
import { type AnyLayout, anyLayout, fieldsSetIn } from './layout-fields.ts';
import { noteReceived } from './lint/queue-rules.ts';
import type { Trace } from './trace.ts';
import { hex, type ObjectNumbers } from './trace-event.ts';

const {
  PATH_MIG,
  COMM_EST,
  SQ_DRAINED,
  WQ_CATAS_ERROR,
  PATH_MIG_FAILED,
  WQ_INVAL_REQ_ERROR,
  WQ_ACCESS_ERROR,
  SRQ_QP_LAST_WQE,
} = EventType;

const qpEvents: readonly number[] = [
  PATH_MIG,
  COMM_EST,
  SQ_DRAINED,
  WQ_CATAS_ERROR,
  PATH_MIG_FAILED,
  WQ_INVAL_REQ_ERROR,
  WQ_ACCESS_ERROR,
  SRQ_QP_LAST_WQE,
];

const eventLayouts: { readonly [type: number]: AnyLayout } = {
  ...Object.fromEntries(qpEvents.map((type) => [type, anyLayout(qpEqe)])),
  [EventType.COMP]: anyLayout(completionEqe),
  [EventType.CQ_ERROR]: anyLayout(cqErrorEqe),
  [EventType.PORT_CHANGE]: anyLayout(portChangeEqe),
  [EventType.CMD]: anyLayout(commandEqe),
  [EventType.SRQ_CATAS_ERROR]: anyLayout(srqEqe),
  [EventType.SRQ_LIMIT]: anyLayout(srqEqe),
  [EventType.FATAL_WARNING]: anyLayout(fatalWarningEqe),
};

const managementLayouts: { readonly [subtype: number]: AnyLayout } = {
  [PortManagementChange.PORT_INFO]: anyLayout(portInfoChangeEqe),
  [PortManagementChange.SL_TO_VL]: anyLayout(slToVlChangeEqe),
};

/** The layout of an event, selected by its type and subtype. */
function eventLayoutOf(type: number, subtype: number): AnyLayout {
  if (type === EventType.PORT_MNG_CHG_EVENT) return managementLayouts[subtype] ?? anyLayout(tableChangeEqe);
  return eventLayouts[type] ?? anyLayout(eqe);
}

/** Runs for every CQE, so it uses accessors and builds no object. */
const { fields } = cqe;

const nameOf = (table: Readonly<Record<string, number>>, code: number): string =>
  Object.entries(table).find(([, known]) => known === code)?.[0] ?? hex(code);

export class CompletionFollower {
  readonly #trace: Trace;
  readonly #view: DeviceView;
  readonly #commands: CommandRegister;

  constructor(trace: Trace, view: DeviceView, commands: CommandRegister) {
    this.#trace = trace;
    this.#view = view;
    this.#commands = commands;
  }

  cqes(address: number, bytes: Uint8Array, nowPs: number): void {
    for (let at = 0; at + cqeBytes <= bytes.length; at += cqeBytes)
      this.#cqe(address + at, bytes.subarray(at, at + cqeBytes), nowPs);
  }

  #cqe(address: number, bytes: Uint8Array, nowPs: number): void {
    const place = this.#view.buffers.find(address);
    const cq = place?.kind === 'cq' ? this.#view.cqs.get(place.number) : undefined;
    const view = viewOf(bytes);
    const qpn = fields.qpn.get(view, 0);
    const opcode = fields.opcode.get(view, 0);
    const isSend = fields.isSend.get(view, 0);
    const sourceQpn = fields.sourceQpn.get(view, 0);
    const producer = cq?.produced ?? 0;
    if (cq !== undefined) cq.produced = (producer + 1) & mask24;
    const isResize = opcode === CqeOpcode.RESIZE;
    const qp = this.#view.qps.get(qpn);
    if (isSend === 0 && !isResize && qp?.serviceType !== ServiceType.XRC)
      noteReceived(qp, qp === undefined ? undefined : this.#view.srqs.get(qp.srqn));
    else if (isSend === 0 && qp?.serviceType === ServiceType.XRC)
      noteReceived(undefined, this.#view.srqs.get(sourceQpn));
    if (!this.#trace.wants('events')) return;
    const isError = opcode === CqeOpcode.ERROR;
    const layout = isError
      ? anyLayout(errorCqe)
      : cq?.context.timestamps === 1
        ? anyLayout(timestampCqe)
        : anyLayout(cqe);
    const what = isResize ? 'RESIZE' : isError ? 'ERROR' : opcodeName(opcode, isSend);
    const side = isSend === 1 ? 'send' : 'receive';
    const where =
      cq === undefined ? `at ${hex(address)}, of no live CQ` : `${hex(producer)} of CQ ${hex(cq.cqn)}`;
    this.#trace.emit('events', nowPs, `CQE ${where}: ${side} ${what} QP ${hex(qpn)}`, {
      objects: { qpn, ...(cq === undefined ? {} : { cqn: cq.cqn }) },
      address,
      lengthBytes: cqeBytes,
      sections: [{ title: 'CQE', fields: fieldsSetIn(layout, bytes) }],
    });
  }

  eqe(address: number, bytes: Uint8Array, nowPs: number): void {
    if (bytes.length < eqeBytes) return;
    const place = this.#view.buffers.find(address);
    const eq = place?.kind === 'eq' ? this.#view.eqs.get(place.number) : undefined;
    const producer = eq?.produced ?? 0;
    if (eq !== undefined) eq.produced = (producer + 1) & mask24;
    const type = eqe.fields.type.get(viewOf(bytes), 0);
    const subtype = eqe.fields.subtype.get(viewOf(bytes), 0);
    const layout = eventLayoutOf(type, subtype);
    if (this.#trace.wants('events')) {
      const where =
        eq === undefined ? `at ${hex(address)}, of no live EQ` : `${hex(producer)} of EQ ${hex(eq.eqn)}`;
      this.#trace.emit('events', nowPs, `EQE ${where}: ${nameOf(EventType, type)}`, {
        objects: { ...this.#objectsOf(type, bytes), ...(eq === undefined ? {} : { eqn: eq.eqn }) },
        address,
        lengthBytes: bytes.length,
        sections: [{ title: layout.name, fields: fieldsSetIn(layout, bytes) }],
      });
    }
    if (type === EventType.COMP) {
      const cq = this.#view.cqs.get(completionEqe.decode(bytes).cqn);
      if (cq !== undefined) cq.firedCount++;
    } else if (type === EventType.CMD) {
      const { token, status, outParam } = commandEqe.decode(bytes);
      this.#commands.event(token, status, outParam, nowPs);
    }
  }

  #objectsOf(type: number, bytes: Uint8Array): ObjectNumbers {
    const number = qpEqe.decode(bytes).qpn;
    if (qpEvents.includes(type)) return { qpn: number };
    if (type === EventType.COMP || type === EventType.CQ_ERROR) return { cqn: number };
    if (type === EventType.SRQ_CATAS_ERROR || type === EventType.SRQ_LIMIT) return { srqn: number };
    if (type === EventType.PORT_CHANGE) return { port: portChangeEqe.decode(bytes).port };
    return {};
  }
}

const opcodeName = (opcode: number, isSend: number): string =>
  isSend === 1 ? (wqeOpcodeRows[opcode]?.name ?? hex(opcode)) : nameOf(ReceiveOpcode, opcode);
