/**
 * One operation of a run, step by step. The run is made twice: first to find the time of the operation, then to record everything in that
 * time. Both runs are equal to the picosecond.
 */
import { ConfigurationError } from '../../base/index.ts';
import { runMachine } from '../../experiments/runs/run.ts';
import { bytesText } from '../../explain/text/format.ts';
import {
  categoriesOfOperations,
  type ExplainedLosses,
  type Explanation,
  explained,
  operationFlows,
  operationOf,
  timeOf,
} from '../../explain/timeline/index.ts';
import { Machine, type MachineOptions, type Report } from '../../machine/index.ts';
import {
  mergedTimeline,
  type Timeline,
  type TimelineOptions,
  timelineCategories,
} from '../../machine/timeline/index.ts';

/** The operation to explain: a send of a host, by number from 0. */
export interface ExplainedSend {
  readonly node: number;
  readonly ordinal: number;
  /** The option that names it, for messages. */
  readonly option: string;
}

type Load = (machine: Machine) => Promise<void>;

/**
 * @param load loads the programs of a machine
 * @throws ConfigurationError if the host posts no such request, or its end is unknown
 */
export async function explanationOfRun(
  machine: MachineOptions,
  load: Load,
  { node, ordinal, option }: ExplainedSend,
): Promise<Explanation & { readonly report: Report }> {
  const { timeline: known } = await recordedOf(machine, load, { categories: categoriesOfOperations });
  const flow = operationOf(known, ordinal, node);
  const count = operationFlows(known).filter((each) => each.node === node && each.ordinal >= 0).length;
  /** A number as the option has it. */
  const named = (number: number): string | number => (option === '--explain' ? `${node}.${number}` : number);
  if (flow === undefined)
    throw new ConfigurationError(
      option,
      named(ordinal),
      count > 0
        ? `${named(0)} to ${named(count - 1)}`
        : `a request of a host that posts: ${hostsThatPost(known)}`,
    );
  const span = timeOf(known, flow);
  if (span === undefined) throw new ConfigurationError(option, ordinal, 'a request that has ended');
  const { timeline: meanwhile, report } = await recordedOf(machine, load, {
    categories: timelineCategories.filter((category) => !categoriesOfOperations.includes(category)),
    fromPs: span.fromPs,
    toPs: span.toPs + 1,
  });
  const dropped = meanwhile.dropped.filter((part) => part.dropped > 0);
  if (dropped.length > 0)
    throw new ConfigurationError(
      option,
      ordinal,
      `a request with at most ${dropped[0]!.kept} events on a side`,
    );
  // Operations that began before this one are known from other records.
  const whole = mergedTimeline([...known.parts, ...meanwhile.parts], known.topology);
  return { ...explained(whole, operationOf(whole, ordinal, node)!)!, report };
}

function hostsThatPost(timeline: Timeline): string {
  const hosts = operationFlows(timeline).flatMap(({ node, ordinal }) => (ordinal >= 0 ? [node] : []));
  return [...new Set(hosts)].toSorted((left, right) => left - right).join(', ') || 'none does';
}

async function recordedOf(
  options: MachineOptions,
  load: Load,
  timeline: TimelineOptions,
): Promise<{ readonly timeline: Timeline; readonly report: Report }> {
  await using machine = await Machine.create({ ...options, analysis: { timeline } });
  await load(machine);
  await runMachine(machine);
  return { timeline: await machine.timeline(), report: await machine.report() };
}

const nsText = (ps: number): string => (ps / 1000).toFixed(3);
/** Events of a step in a terminal; the JSON and the page of `hca explain` have all. */
const eventsShown = 100;

/** Lines above the steps. */
export function sentencesOf(explanation: Explanation): string[] {
  const {
    node,
    ordinal,
    operation,
    qpn,
    wqeCounter,
    payloadBytes,
    postedPs,
    latencyPs,
    isSilent,
    syndrome,
    others,
    losses,
    steps,
  } = explanation;
  // Unreliable services send no answers: a request completes with its last packet.
  const isAnswered = steps.some(({ stage }) => stage === 'remote');
  const silentEnd = isAnswered ? 'its acknowledgement' : 'the departure of its last packet';
  const end = isSilent ? `${silentEnd}, for it has no CQE` : 'its completion in the program’s hands';
  return [
    `Operation ${ordinal} of host ${node}: ${operation} of ${bytesText(payloadBytes)}, QP 0x${qpn.toString(16)}, WQE 0x${wqeCounter.toString(16)}.`,
    `Posted at ${nsText(postedPs)} ns after power-on; ${nsText(latencyPs)} ns from there to ${end}.`,
    ...(syndrome === undefined ? [] : [`It failed: the CQE has syndrome 0x${syndrome.toString(16)}.`]),
    ...(losses === undefined ? [] : [lossesText(losses)]),
    ...(others === 0
      ? ['Nothing else was under way meanwhile.']
      : [
          `${others} other operations were under way meanwhile: their DMA, TLPs and look-ups are among the events.`,
        ]),
  ];
}

function lossesText({ lost, corrupted, repeated }: ExplainedLosses): string {
  const counts = [
    ...(lost === 0 ? [] : [`${lost} never arrived`]),
    ...(corrupted === 0 ? [] : [`${corrupted} arrived corrupted`]),
    ...(repeated === 0 ? [] : [`${repeated} ${repeated === 1 ? 'was' : 'were'} sent again`]),
  ];
  return `Of its packets and answers, ${counts.join(', ')}: the time of a step is that of all attempts together.`;
}

export function explanationText(explanation: Explanation): string {
  const { latencyPs, steps } = explanation;
  const width = Math.max(12, nsText(latencyPs).length + 2);
  return [
    ...sentencesOf(explanation),
    '',
    `${'after ns'.padStart(width)}${'lasts ns'.padStart(width)}`,
    ...steps.flatMap(({ stage, afterPs, durationPs, text, parts = [], events }) => [
      `${nsText(afterPs).padStart(width)}${nsText(durationPs).padStart(width)}  ${stage}: ${text}`,
      ...parts.map(
        (part) =>
          `${nsText(part.afterPs).padStart(width)}${nsText(part.durationPs).padStart(width)}    ${part.where}: ${part.text}`,
      ),
      ...events
        .slice(0, eventsShown)
        .map(
          (event) =>
            `${nsText(event.afterPs).padStart(width)}${nsText(event.durationPs).padStart(width)}    · ${event.where}: ${event.text}`,
        ),
      ...(events.length > eventsShown
        ? [`${' '.repeat(2 * width)}    · and ${events.length - eventsShown} more events`]
        : []),
    ]),
    `${nsText(latencyPs).padStart(width)}${nsText(steps.reduce((sum, { durationPs }) => sum + durationPs, 0)).padStart(width)}  all steps together`,
  ].join('\n');
}
