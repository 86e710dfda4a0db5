/** Mistakes that the model had once: those that outsiders' programs found, put back one by one into the code of today. */
import type { Mistake } from './mistake.ts';

export const onceFoundMistakes: readonly Mistake[] = [
  {
    name: 'packets-outlive-their-request',
    what: 'A packet of a request that has ended goes out for the request that has its record now.',
    kind: 'generation not raised',
    scene: 'late-answers',
    file: 'hw/hca/requester/request-completion.ts',
    find: '    request.generation = (request.generation + 1) | 0;\n',
    replace: '',
  },
  {
    name: 'half-packet-goes-on',
    what: 'A packet that was half gathered when its request ended goes on as part of the next one.',
    kind: 'check skipped',
    scene: 'late-answers',
    file: 'hw/hca/requester/request-packets.ts',
    find: `if (packet.sendGeneration !== pair.sendGeneration || packet.pair !== pair || !packet.isOfRequest)
      this.abandon(cycle);`,
    replace: 'if (packet.sendGeneration !== pair.sendGeneration) this.abandon(cycle);',
  },
  {
    name: 'absent-page-is-bad',
    what: 'A second look at an absent page of an on-demand region answers bad page, not page fault.',
    kind: 'wrong status',
    file: 'hw/hca/memory/translator.ts',
    find: `    if (found !== BAD_PAGE || this.#absentLine === NO_LINE) return found;
    this.#forgetAbsent();
    return PAGE_FAULT;
`,
    replace: `    if (found === BAD_PAGE && this.#absentLine !== NO_LINE) this.#forgetAbsent();
    return found;
`,
  },
  {
    name: 'dereg-without-fence',
    what: 'Deregistration ends while reads and writes of the region are under way.',
    kind: 'fence left out',
    scene: 'taken-away',
    file: 'hw/hca/commands/memory-regions.ts',
    find: '  dataPath.mptChanged(index);\n  yield* outlastAccesses(device);\n',
    replace: '  dataPath.mptChanged(index);\n',
  },
  {
    name: 'destroyed-while-served',
    what: 'A QP is gone while packets and requests of it are still in the pipelines.',
    kind: 'fence left out',
    scene: 'abandoned-queues',
    file: 'hw/hca/commands/queue-pairs.ts',
    find: '!dataPath.qpIsBusy(slot) && dataPath.isFencePassed()',
    replace: 'dataPath.isFencePassed()',
  },
  {
    name: 'times-by-low-qpn-bits',
    what: 'The ledger of operations keeps times by the low ten bits of the QPN.',
    kind: 'wrong address',
    file: 'system/machine/node/operation-times.ts',
    find: `    this.#directory[qpn] = (first << LOG_BITS) | (log + 1);
  }

  /** Takes the entries of a QP back, if it has any. To be called by the host alone. */
  close(qpn: number): void {
    const word = this.#wordOf(qpn);
    if (word === 0) return;
    this.#free[(word & LOG_MASK) - 1]!.push(word >>> LOG_BITS);
    this.#directory[qpn] = 0;
  }

  /** The entry of a request; -1 when its QP has none. */
  entryOf(qpn: number, wqeCounter: number): number {
    const word = this.#wordOf(qpn);
    if (word === 0) return NO_ENTRY;
    const entry = (word >>> LOG_BITS) + (wqeCounter & ((1 << ((word & LOG_MASK) - 1)) - 1));
    if (entry >= this.#room) this.#search();
    return entry;
  }

  /** A QP's word of the directory: 0 where there is none. */
  #wordOf(qpn: number): number {
    if (qpn < this.#directory.length) return this.#directory[qpn]!;`,
    replace: `    this.#directory[qpn & 1023] = (first << LOG_BITS) | (log + 1);
  }

  /** Takes the entries of a QP back, if it has any. To be called by the host alone. */
  close(qpn: number): void {
    const word = this.#wordOf(qpn);
    if (word === 0) return;
    this.#free[(word & LOG_MASK) - 1]!.push(word >>> LOG_BITS);
    this.#directory[qpn & 1023] = 0;
  }

  /** The entry of a request; -1 when its QP has none. */
  entryOf(qpn: number, wqeCounter: number): number {
    const word = this.#wordOf(qpn);
    if (word === 0) return NO_ENTRY;
    const entry = (word >>> LOG_BITS) + (wqeCounter & ((1 << ((word & LOG_MASK) - 1)) - 1));
    if (entry >= this.#room) this.#search();
    return entry;
  }

  /** A QP's word of the directory: 0 where there is none. */
  #wordOf(qpn: number): number {
    if (qpn < this.#directory.length) return this.#directory[qpn & 1023]!;`,
  },
  {
    name: 'time-out-counted-as-payload',
    what: 'Waiting for an ACK time-out is counted as reading payload.',
    kind: 'wrong stage',
    file: 'hw/hca/statistics/operations.ts',
    find: 'stagesPs.ackTimeout += this.#stageUntil(timedOut);',
    replace: 'stagesPs.payloadRead += this.#stageUntil(timedOut);',
  },
  {
    name: 'rnr-delay-counted-as-payload',
    what: 'An RNR delay is counted as reading payload.',
    kind: 'wrong stage',
    scene: 'late-receives',
    file: 'hw/hca/statistics/operations.ts',
    find: 'stagesPs.rnrDelay += this.#stageUntil(ready);',
    replace: 'stagesPs.payloadRead += this.#stageUntil(ready);',
  },
  {
    name: 'progress-stays-in-old-epoch',
    what: 'When the clock is set back the instant of the last progress of a QP is not.',
    kind: 'wrong time',
    scene: 'short-epochs',
    file: 'hw/hca/objects/queue-pair.ts',
    find: '    this.lastProgressPs -= ps;\n',
    replace: '    if (this.hasTimer === 0) this.lastProgressPs -= ps;\n',
  },
  {
    name: 'lost-response-is-no-retry',
    what: 'A READ response that is lost does not count against the retries.',
    kind: 'check skipped',
    scene: 'lost-packets',
    file: 'hw/hca/requester/acknowledgements.ts',
    find: `    if (pair.retriesLeft === 0) return this.#failOrWait(pair, TRANSPORT_RETRY_EXC_ERR, cycle) !== WAIT;
    this.#core.transport.count('missingResponse');
    pair.retriesLeft--;
`,
    replace: "    this.#core.transport.count('missingResponse');\n",
  },
  {
    name: 'asked-again-for-each-response',
    what: 'Each response behind a lost one has the rest asked for again.',
    kind: 'check skipped',
    scene: 'lost-packets',
    file: 'hw/hca/requester/acknowledgements.ts',
    find: '    if (psn === pair.missingPsn) return true;\n',
    replace: '',
  },
  {
    name: 'any-length-is-posted',
    what: 'The user library posts lengths, keys and addresses that are none.',
    kind: 'check skipped',
    scene: 'request-lists',
    file: 'userlib/post-send.ts',
    find: 'if (!isUint32(sendFlags) || !isListValid(wr.sgList, numSge)) return EINVAL;',
    replace: 'if (!isUint32(sendFlags) || (numSge > 0 && !isListValid(wr.sgList, 1))) return EINVAL;',
  },
  {
    name: 'responses-always-first',
    what: 'A request is sent only when there is no response to send.',
    kind: 'wrong order',
    scene: 'two-ways',
    file: 'hw/hca/packets/transmitter.ts',
    find: 'return isRequest && this.#responsesInRow >= this.#responseBurstPackets ? requests : responses;',
    replace: 'return isRequest && this.#responseBurstPackets === 0 ? requests : responses;',
  },
  {
    name: 'queues-outgrow-their-fifo',
    what: 'The fifo of receive queues that wait for a look does not grow with the queues, and is full before its time.',
    kind: 'wrong length',
    scene: 'crowd-of-queues',
    file: 'hw/hca/receive-queue/receive-wqe-fetch.ts',
    find: '    this.#work.enlarge(qps.slotCount + srqs.slotCount);\n',
    replace: '',
  },
  {
    name: 'whole-packets-wait-for-the-wire',
    what: 'A packet longer than what may wait is formed only when the one before has left.',
    kind: 'wrong time',
    scene: 'one-message',
    file: 'wire/wire-sender.ts',
    find: 'const readyPs = this.serializer.freePs - (formingPs > aheadPs ? formingPs : aheadPs);',
    replace: 'const readyPs = this.serializer.freePs - Math.max(aheadPs, Math.min(formingPs, aheadPs));',
  },
  {
    name: 'each-datagram-looks-anew',
    what: 'Each datagram that finds no receive has the doorbell record read anew.',
    kind: 'wrong time',
    scene: 'torn-messages',
    file: 'hw/hca/receive-queue/receive-wqe-fetch.ts',
    find: '      if (++state.emptyAnswerCount === 2) this.#ask(queue, cycle);\n',
    replace: '      state.emptyCycle = Number.NEGATIVE_INFINITY;\n',
  },
  {
    name: 'queued-counts-as-sent',
    what: 'A packet counts as sent when it is queued, so that all others count as retransmitted.',
    kind: 'wrong order',
    file: 'hw/hca/requester/request-packets.ts',
    find: '    packet.psn = (request.firstPsn + index) & 0xffffff;\n',
    replace:
      '    packet.psn = (request.firstPsn + index) & 0xffffff;\n    pair.unsentPsn = (packet.psn + 1) & 0xffffff;\n',
  },
  {
    name: 'moderated-stays-zero',
    what: 'Completions that wait for others under CQ moderation are not counted as moderated.',
    kind: 'check skipped',
    scene: 'moderated-events',
    file: 'hw/hca/completion/cq-arm.ts',
    find: '    queue.wantedCount++;\n',
    replace: '    queue.wantedCount = 1;\n',
  },
  {
    name: 'unreliable-send-fails-the-qp',
    what: 'A send error of an unreliable QP leads to the error state, from which software cannot return.',
    kind: 'wrong status',
    scene: 'torn-messages',
    file: 'hw/hca/lifecycle/queue-pair-errors.ts',
    find: 'if (opcodeBase !== UC_OPCODE_BASE && opcodeBase !== UD_OPCODE_BASE) return this.fail(qp, cycle);',
    replace: 'if (opcodeBase <= Math.max(UC_OPCODE_BASE, UD_OPCODE_BASE)) return this.fail(qp, cycle);',
  },
  {
    name: 'any-partition-on-connections',
    what: 'P_Keys are checked on datagrams only.',
    kind: 'check skipped',
    scene: 'other-partitions',
    file: 'hw/hca/receiver/receiver.ts',
    find: 'if (pair.opcodeBase !== UD_OPCODE_BASE && !this.#isInPartition(pair))',
    replace: 'if (pair.opcodeBase === UD_OPCODE_BASE && !this.#isInPartition(pair))',
  },
  {
    name: 'resize-ends-before-the-mark',
    what: 'The command that resizes a CQ ends before the last entry of the old buffer is written.',
    kind: 'fence left out',
    scene: 'unpolled-completions',
    file: 'hw/hca/commands/completion-queues.ts',
    find: '  yield* until(() => !dataPath.cqIsResizing());\n',
    replace: '',
  },
  {
    name: 'event-for-the-next-cq',
    what: 'An event of a CQ that was destroyed comes to the next one with its number.',
    kind: 'fence left out',
    scene: 'next-queue',
    file: 'driver/cq.ts',
    find: '  if (cq.eq.hasEntries) await cq.eq.handleInterrupt(cpu);\n',
    replace: '',
  },
  {
    name: 'time-out-of-an-earlier-request',
    what: 'The ACK time-out of a request counts from the progress of an earlier one.',
    kind: 'wrong time',
    scene: 'unanswered',
    file: 'hw/hca/requester/retry-timers.ts',
    find: '    if (isOldest) pair.lastProgressPs = nowPs;\n',
    replace: '',
  },
  {
    name: 'failed-translation-stays',
    what: 'A translation that could not be read fails once more after the tables have changed.',
    kind: 'generation not raised',
    scene: 'lost-lookups',
    file: 'hw/hca/memory/translator.ts',
    find: '    this.#failedTag.fill(-1);\n  }',
    replace: '  }',
  },
  {
    name: 'repeated-read-dropped',
    what: 'A READ that is repeated while it is being answered is dropped, and waits for the next time-out.',
    kind: 'lost event',
    scene: 'lost-packets',
    file: 'hw/hca/responder/response-engine.ts',
    find: 'if (resources.kind[entry] !== KIND_READ) return;',
    replace: 'if (resources.kind[entry] !== KIND_READ || resources.sent[entry]! > 0) return;',
  },
  {
    name: 'ack-in-place-of-a-nak',
    what: 'The acknowledgement of a repeated request takes the place of a refusal that waits to be sent.',
    kind: 'check skipped',
    scene: 'lost-packets',
    file: 'hw/hca/responder/response-engine.ts',
    find: 'if (hasAck === 1 && psnDistance(psn, ackPsn) < 0) this.coalescedCount++;',
    replace:
      'if (hasAck === 1 && this.#resources.rows[qp]!.ackSyndrome === -1 && psnDistance(psn, ackPsn) < 0) this.coalescedCount++;',
  },
];
