/** Makes the blocks of the IBTA transport, in the order of their stages, and hands each of them the parts that it declares. */
import type { BlockAccount } from '../../../sim/index.ts';
import type { EngineParts, TransportRoles } from '../transport/index.ts';
import type { IbtaParts } from './ibta-parts.ts';
import { Transmitter } from './packets/index.ts';
import { DatagramReceiver, Receiver } from './receiver/index.ts';
import {
  Acknowledgements,
  type AnswerSide,
  IbtaRequests,
  RetryTimers,
  SelectiveAcknowledgements,
} from './requests/index.ts';
import { Responder, ResponseEngine } from './responder/index.ts';

type Parts = EngineParts & IbtaParts;

/** The blocks by name. */
export type IbtaBlocks = ReturnType<typeof makeIbtaBlocks>;

export function makeIbtaBlocks(parts: Parts) {
  const { states, loopback, reorder, laneGate, roceLink, notificationPoint, reactionPoint } = parts;
  const transmitter = makeTransmitter(parts);
  const responses = makeResponses(parts);
  const receiver = makeReceiver(parts);
  return {
    states,
    loopback,
    reorder,
    laneGate,
    transmitter,
    responses,
    receiver,
    roceLink,
    notificationPoint,
    reactionPoint,
    ...makeRequestSide(parts, receiver.account),
    ...makeResponseSide(parts, receiver.account),
  };
}

/** The blocks that the engines reach, by their roles. */
export const ibtaRoles = (b: IbtaBlocks): TransportRoles => ({
  connections: b.states,
  requestTransport: b.ibtaRequests,
  outbound: b.transmitter,
  inbound: b.receiver,
  responses: b.responses,
  otherAccounts: [],
  frameSink: b.roceLink,
});

function makeTransmitter(parts: Parts): Transmitter {
  const { lp, domain, config, dmaRead, qps, sram, records } = parts;
  const { states, ports, addresses, networkHeaders, requestPackets, responsePackets, loopback } = parts;
  const { notificationPoint, laneGate } = parts;
  return new Transmitter({
    lp,
    domain,
    config,
    dmaRead,
    ports,
    addresses,
    qps,
    states,
    sram,
    records,
    requestPackets,
    responsePackets,
    notificationPackets: notificationPoint.isOn ? notificationPoint.packets : undefined,
    loopback,
    laneGate,
    networkHeaders,
  });
}

function makeResponses(parts: Parts): ResponseEngine {
  const { domain, config, dmaRead, dmaWrite, qps, states, sram, sramView, allocateSram } = parts;
  const { translator, pageFaults, responsePackets, readUnit, transport, diagnostics, costs } = parts;
  const { reactionPoint, laneGate, reorder } = parts;
  return new ResponseEngine({
    domain,
    config,
    dmaRead,
    dmaWrite,
    qps,
    states,
    sram,
    sramView,
    allocateSram,
    translator,
    pageFaults,
    responsePackets,
    readUnit,
    transport,
    diagnostics,
    costs,
    reactionPoint,
    laneGate,
    reorder,
  });
}

function makeReceiver(parts: Parts): Receiver {
  const { lp, domain, config, ports, specialQps, managers, groups } = parts;
  const { qps, qpcCache, loopback, reorder, receiveTurns, received, violations, costs } = parts;
  return new Receiver({
    lp,
    domain,
    config,
    ports,
    specialQps,
    managers,
    groups,
    qps,
    qpcCache,
    loopback,
    reorder,
    receiveTurns,
    received,
    violations,
    costs,
  });
}

/** @param account of the receiver, whose stage works on answers */
function makeRequestSide(parts: Parts, account: BlockAccount) {
  const { lp, domain, config, qps, states, records, costs } = parts;
  const { translator, pageFaults, received, readUnit, transport, diagnostics } = parts;
  const { datagrams } = records;
  const { notificationPoint, reactionPoint, laneGate, selectiveRepeat, reorder } = parts;
  const setup = {
    lp,
    config,
    qps,
    states,
    translator,
    pageFaults,
    received,
    readUnit,
    transport,
    diagnostics,
    reactionPoint,
  };
  const acknowledgements: AnswerSide =
    selectiveRepeat === undefined
      ? new Acknowledgements(setup, account)
      : new SelectiveAcknowledgements({ ...setup, selectiveRepeat }, account);
  return {
    timers: new RetryTimers({ lp, domain, config, qps, states, diagnostics, selectiveRepeat }),
    ibtaRequests: new IbtaRequests({
      states,
      datagrams,
      costs,
      notificationPoint,
      reactionPoint,
      laneGate,
      selectiveRepeat,
      reorder,
    }),
    acknowledgements,
  };
}

/** @param account of the receiver, whose stage works on requests and datagrams */
function makeResponseSide(parts: Parts, account: BlockAccount) {
  const { domain, qps, cqs, srqs, states } = parts;
  const { translator, pageFaults, received, violations, transport, diagnostics, reorder } = parts;
  return {
    datagrams: new DatagramReceiver(
      { qps, pageFaults, received, violations, transport, diagnostics },
      account,
    ),
    responder: new Responder(
      { domain, cqs, srqs, states, translator, pageFaults, received, transport, diagnostics, reorder },
      account,
    ),
  };
}
