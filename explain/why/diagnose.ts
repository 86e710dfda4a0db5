/**
 * From evidence to causes: finds the symptoms (failed requests, overrun CQs, refused calls, waiting programs, then lost
 * time) and explains each by the rules of its kind. A symptom caused by another one has no finding of its own.
 */

import { CqeSyndrome } from '../../abi/index.ts';
import { mask24 } from '../../base/index.ts';
import type { Evidence } from '../../machine/evidence/index.ts';
import { type Cause, type Explanation, explained, hex, type Weight } from './cause.ts';
import { connectionFailed } from './connections.ts';
import { failureExplained } from './failures.ts';
import { notesOf } from './notes.ts';
import { overrunExplained } from './overruns.ts';
import { refusedPostExplained } from './refused-posts.ts';
import { refusedVerbExplained } from './refused-verbs.ts';
import { noAnswerRules, notReady } from './retries.ts';
import { type FiredFault, Scene } from './scene.ts';
import { streamFindings } from './streams.ts';
import { bootFailed, thrownExplained } from './thrown.ts';
import { emptyWaitExplained, ownCompletionsTaken, type Waiting, waitExplained } from './waits.ts';

/** End of the run, if that explains anything. */
export interface RunEnd {
  /**
   * `threw`: a program threw; `waits`: programs wait for an event that never occurs; `ended`: all programs have ended,
   * or a guest's time is over.
   */
  readonly how: 'ended' | 'threw' | 'waits';
  /** A refused control verb whose error the program did not catch. */
  readonly refusedVerb?: { readonly node: number; readonly text: string; readonly line?: string };
  /** Another error that a program threw. */
  readonly thrown?: {
    readonly node: number;
    readonly text: string;
    /** Whether the driver failed, before any program ran. */
    readonly isBoot: boolean;
    readonly line?: string;
  };
}

/** Causes, and the key of each: causes with the same key are one. */
class Causes {
  readonly #byKey = new Map<string, Cause & { count: number }>();

  add(node: number, explanation: Explanation, weight: Weight, line: string | undefined): void {
    const { cause, sentence, evidence, advice, mendLine } = explanation;
    const key = explanation.key ?? `${cause} ${node} ${sentence}`;
    const known = this.#byKey.get(key);
    if (known !== undefined) {
      known.count++;
      return;
    }
    this.#byKey.set(key, {
      cause,
      weight: explanation.weight ?? weight,
      node,
      sentence: `${sentence}.`,
      evidence,
      ...(line === undefined ? {} : { line }),
      ...(mendLine === undefined ? {} : { mendLine }),
      advice,
      count: 1,
    });
  }

  get hasFault(): boolean {
    return this.all.some(({ weight }) => weight === 'fault');
  }

  /** Faults first. */
  get all(): Cause[] {
    const found = [...this.#byKey.values()];
    return [
      ...found.filter(({ weight }) => weight === 'fault'),
      ...found.filter(({ weight }) => weight === 'note'),
    ];
  }
}

/** The causes of failures in devices whose hosts are guests: nothing is known about their programs. */
export const diagnosedGuests = (evidence: Evidence, faults: readonly FiredFault[] = []): Cause[] =>
  diagnose(evidence, { how: 'ended' }, faults);

/**
 * The causes of all failures.
 * @param faults the injected ones, with the number of times that each fired
 */
export function diagnose(evidence: Evidence, end: RunEnd, faults: readonly FiredFault[] = []): Cause[] {
  const scene = new Scene(evidence, faults);
  const findings = new Causes();
  addOverruns(scene, findings);
  addFailures(scene, findings);
  addStreams(scene, findings, end);
  addRefusals(scene, findings, end);
  addTouched(scene, findings);
  addOpenRequests(scene, findings);
  addCommands(scene, findings);
  if (end.how !== 'threw') addWaits(scene, findings);
  addNotes(scene, findings);
  addThrown(scene, findings, end);
  return findings.all;
}

function addOverruns(scene: Scene, findings: Causes): void {
  for (const { node, cqs } of scene.devices)
    for (const { cqn } of cqs) {
      const explanation = overrunExplained(scene, node, cqn);
      if (explanation !== undefined) findings.add(node, explanation, 'fault', lastPostLine(scene, node, cqn));
    }
}

/** The line of the last request whose completion had no room. */
function lastPostLine(scene: Scene, node: number, cqn: number): string | undefined {
  const qps = scene.device(node)?.qps.filter(({ sendCqn }) => sendCqn === cqn) ?? [];
  return scene.host(node)?.posts.findLast((post) => qps.some(({ qpn }) => qpn === post.qpn))?.line;
}

function addFailures(scene: Scene, findings: Causes): void {
  const isFlush = ({ syndrome }: { readonly syndrome: number }): boolean =>
    syndrome === CqeSyndrome.WR_FLUSH_ERR;
  const consequences: {
    readonly node: number;
    readonly explanation: Explanation;
    readonly line?: string | undefined;
  }[] = [];
  for (const isLater of [false, true])
    for (const { node, errors } of scene.devices)
      for (const error of errors) {
        if (isFlush(error) !== isLater) continue;
        const qp = scene.qp(node, error.qpn, error.atPs);
        if (qp === undefined || qp.service === 'MLX') continue;
        const post = error.isSend ? scene.post(node, error.qpn, error.wqeCounter) : undefined;
        const explanation = failureExplained({ scene, node, error, qp, post });
        // A guest's kernel drains its QPs in this way: it is not an error.
        const isDrain = explanation?.cause === 'flushed-by-program' && scene.host(node) === undefined;
        if (explanation === undefined || isDrain) continue;
        // The peer's own error has a finding of its own, if it has a completion.
        if (explanation.cause === 'peer-qp-error' && explanation.evidence['isOwnError'] === 1)
          consequences.push({ node, explanation, line: post?.line });
        else findings.add(node, explanation, 'fault', post?.line);
      }
  if (findings.hasFault) return;
  for (const { node, explanation, line } of consequences) findings.add(node, explanation, 'fault', line);
}

/** Streams of iWARP that ended by an error: a refused WRITE or SEND may have completed well. */
function addStreams(scene: Scene, findings: Causes, { how }: RunEnd): void {
  for (const { node, explanation, line } of streamFindings(scene, how === 'waits'))
    findings.add(node, explanation, 'fault', line);
}

/** Requests of a guest that were unanswered when their QP was destroyed, or still are. */
function addOpenRequests(scene: Scene, findings: Causes): void {
  for (const { node, qps, atPs } of scene.devices) {
    if (scene.host(node) !== undefined) continue;
    for (const qp of qps) {
      const isTried = qp.timeouts > 0 || qp.rnrNaksReceived > 0 || qp.sequenceNaksReceived > 0;
      if (qp.underWay.length + qp.abandoned === 0 || qp.failed > 0) continue;
      const open = { scene, node, qp, post: undefined, atPs: qp.destroyedPs ?? atPs };
      const isNotReady = qp.rnrNaksReceived > 0 && qp.timeouts === 0;
      const explanation = isNotReady ? notReady(open) : explained(noAnswerRules, open);
      // With timeout 0 nothing is retried: the request may still be in progress, unless its packets cannot arrive.
      const isUnknown = explanation === undefined || explanation.cause === 'no-answer';
      if (isTried ? explanation === undefined : qp.timeoutCode !== 0 || isUnknown) continue;
      findings.add(node, explanation!, 'fault', undefined);
    }
  }
}

/** Commands of a guest on its objects that the device rejected; commands that probe the device's capabilities are left out. */
function addCommands(scene: Scene, findings: Causes): void {
  for (const { node, commands } of scene.devices) {
    if (scene.host(node) !== undefined) continue;
    for (const { command, status, inputModifier } of commands) {
      if (!/_QP$|^SW2HW_|^MODIFY_CQ$/.test(command) || /^SW2HW_EQ$/.test(command)) continue;
      const explanation: Explanation = {
        cause: 'command-rejected',
        sentence: `The device of host ${node} rejected ${command} of object ${hex(inputModifier & mask24)} with ${status}`,
        evidence: { command, status, object: inputModifier & mask24 },
        advice:
          'The call that issued it returned an error number: ibv_modify_qp, ibv_create_cq, ibv_reg_mr … of that object.',
      };
      findings.add(node, explanation, 'note', undefined);
    }
  }
}

function addRefusals(scene: Scene, findings: Causes, { how, refusedVerb }: RunEnd): void {
  for (const { node, refusedCalls } of scene.hosts)
    for (const call of refusedCalls) {
      const explanation = refusedPostExplained({ scene, node, call });
      // A program may post until the queue is full and then poll.
      const isFlowControl =
        call.errno === 'ENOMEM' && how === 'ended' && explanation.cause !== 'send-queue-unsignalled';
      findings.add(node, explanation, isFlowControl ? 'note' : 'fault', call.line);
    }
  if (refusedVerb === undefined) return;
  const { node, text, line } = refusedVerb;
  findings.add(node, refusedVerbExplained(scene, node, text), 'fault', line);
}

/** A program that changes memory that the device reads, or uses memory that the device writes. */
function addTouched(scene: Scene, findings: Causes): void {
  for (const { node, touched } of scene.hosts)
    for (const { access, bytes, address, deviceAccess, queue, wrId, line } of touched)
      findings.add(
        node,
        {
          cause: 'buffer-in-use',
          sentence: `The program of host ${node} does ${access} to ${bytes} bytes at ${hex(address)}, which the device ${deviceAccess} for work request ${wrId} of the ${queue} until its completion has been polled`,
          evidence: { address, bytes, wrId },
          advice: 'Leave the buffer alone until its completion was polled, or post inline.',
          key: `touched ${node} ${queue} ${access} ${line ?? wrId}`,
        },
        access === 'read' ? 'note' : 'fault',
        line,
      );
}

function addWaits(scene: Scene, findings: Causes): void {
  const all = scene.hosts.flatMap(({ node, waits }) =>
    waits.map(
      (wait): Waiting => ({ scene, node, wait, cqns: wait.cqns, atPs: scene.device(node)?.atPs ?? 0 }),
    ),
  );
  for (const waiting of all) {
    const explanation = waitExplained(waiting);
    if (explanation !== undefined) findings.add(waiting.node, explanation, 'fault', waiting.wait.line);
  }
  if (findings.hasFault) return;
  for (const waiting of all) {
    const explanation = ownCompletionsTaken(waiting);
    if (explanation !== undefined) findings.add(waiting.node, explanation, 'fault', waiting.wait.line);
  }
  if (findings.hasFault) return;
  for (const waiting of all)
    findings.add(waiting.node, emptyWaitExplained(waiting), 'fault', waiting.wait.line);
}

/** An error that a program threw and that no other finding explains. */
function addThrown(scene: Scene, findings: Causes, { thrown }: RunEnd): void {
  if (thrown === undefined || findings.hasFault) return;
  const { node, text, isBoot, line } = thrown;
  const explanation = isBoot
    ? bootFailed(node, text)
    : (connectionFailed(scene, node) ?? thrownExplained(scene, node, text));
  findings.add(node, explanation, 'fault', line);
}

function addNotes(scene: Scene, findings: Causes): void {
  const named = new Set(findings.all.map(({ cause }) => cause));
  for (const device of scene.devices)
    for (const note of notesOf(scene, device)) {
      const isNamed =
        named.has(note.cause) ||
        (note.cause === 'rnr-wait' && [...named].some((cause) => /receive|srq-empty/.test(cause)));
      const isConsequence = note.cause === 'retransmissions' && findings.hasFault;
      if (isNamed || isConsequence) continue;
      // If the connection fails for another reason, this is only a note.
      const isMinor = /^(roce-version|wrong-vlan)$/.test(note.cause) && findings.hasFault;
      findings.add(device.node, isMinor ? { ...note, weight: 'note' } : note, 'note', undefined);
    }
}
