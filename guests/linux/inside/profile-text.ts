/** A profile of a Linux in this process for people, in lines of at most 80 characters, and for flame graph tools. */
import { countText, shareText, timeText } from '../../../explain/text/format.ts';
import {
  baseName,
  functionText,
  type GuestProfile,
  type ProfiledFunction,
  type ProfiledProgram,
  timeOf,
} from './guest-profile.ts';

const lineCharacters = 80;
const functionsShown = 20;
const programsShown = 10;

/** The profile as text: what the time went to, the functions with the most, and the programs. */
export function profileText(profile: GuestProfile): string {
  return [
    ...head(profile),
    '',
    ...functionLines(profile),
    '',
    ...accessLines(profile),
    ...programLines(profile),
    '',
    ...notes(profile),
  ]
    .map((line) => line.trimEnd())
    .join('\n');
}

/**
 * Lines `mode;module or program;function instructions`, the folded stacks that flame graph tools read. Their stacks are not calls:
 * only the function is known in which a quantum ended.
 */
export function foldedProfile({ functions }: GuestProfile): string {
  return functions
    .filter(({ instructions }) => instructions > 0)
    .map((each) => `${foldedStack(each).map(withoutSeparators).join(';')} ${each.instructions}\n`)
    .join('');
}

function foldedStack(each: ProfiledFunction): string[] {
  if (each.mode === 'user') return ['user', baseName(each.program)];
  if (each.mode === 'halting') return ['halting'];
  return ['kernel', each.module ?? 'outside', ...(each.name === undefined ? [] : [each.name])];
}

const withoutSeparators = (text: string): string => text.replaceAll(/[;\s]/g, '_');

function head({
  name,
  instructionCount,
  instructionsByMode,
  account,
  halts,
  interrupts,
}: GuestProfile): string[] {
  const { kernel, user, halting } = instructionsByMode;
  const elapsedPs = Object.values(account).reduce((sum, ps) => sum + ps, 0);
  const parts = [
    ['instructions', account.executingPs],
    ['loads', account.loadsPs],
    ['stores', account.storesPs],
    ['interrupts', account.interruptsPs],
    ['waking', account.wakingPs],
    ...(account.chancePs === 0 ? [] : [['chance', account.chancePs] as const]),
    ['idle', account.idlePs],
  ] as const;
  return [
    `Processor of ${name}: ${countText(instructionCount)} instructions in ${timeText(elapsedPs)}`,
    `  kernel ${shareText(kernel, instructionCount)}, user ${shareText(user, instructionCount)}, ` +
      `before halts ${shareText(halting, instructionCount)} (either)`,
    ...wrapped(parts.map(([what, ps]) => `${what} ${shareText(ps, elapsedPs)}`)),
    ...wrapped([
      `${countText(interrupts.messages)} MSI-X messages`,
      `${countText(interrupts.pins)} pin interrupts`,
      `${countText(halts)} halts`,
    ]),
  ];
}

const share = (part: number, whole: number): string => shareText(part, whole).padStart(7);
const count = (value: number, characters = 15): string => countText(value).padStart(characters);
/** Shortens a name to the room in its line that other columns of `taken` characters leave. */
const shortened = (text: string, taken: number): string => {
  const room = lineCharacters - taken;
  return text.length <= room ? text : `${text.slice(0, room - 1)}…`;
};

function functionLines({ functions, account }: GuestProfile): string[] {
  const shown = functions.slice(0, functionsShown);
  const rest = functions.slice(functionsShown);
  const wholePs = account.executingPs + account.loadsPs + account.storesPs;
  const line = (each: ProfiledFunction): string => {
    const columns = `${share(timeOf(each), wholePs)} ${count(each.instructions)} ${timeText(each.accessesPs).padStart(10)}  `;
    return columns + shortened(functionText(each), columns.length);
  };
  const sumOf = (what: (each: ProfiledFunction) => number): number =>
    rest.reduce((sum, each) => sum + what(each), 0);
  return [
    `${'time'.padStart(7)} ${'instructions'.padStart(15)} ${'accesses'.padStart(10)}  function or program`,
    ...shown.map(line),
    ...(rest.length === 0
      ? []
      : [
          `${share(sumOf(timeOf), wholePs)} ${count(sumOf(({ instructions }) => instructions))} ` +
            `${timeText(sumOf(({ accessesPs }) => accessesPs)).padStart(10)}  ${rest.length} others`,
        ]),
  ];
}

function accessLines({ functions, account }: GuestProfile): string[] {
  const accessesOf = ({ loads, stores, configurationAccesses }: ProfiledFunction): number =>
    loads + stores + configurationAccesses;
  const rows = functions
    .filter((each) => accessesOf(each) > 0)
    .sort((a, b) => b.accessesPs - a.accessesPs)
    .slice(0, functionsShown);
  if (rows.length === 0) return [];
  const wholePs = account.loadsPs + account.storesPs;
  return [
    `${'time'.padStart(7)} ${'loads'.padStart(10)} ${'stores'.padStart(10)} ${'config'.padStart(8)}  accesses of the device`,
    ...rows.map((each) => {
      const columns =
        `${share(each.accessesPs, wholePs)} ${count(each.loads, 10)} ${count(each.stores, 10)} ` +
        `${count(each.configurationAccesses, 8)}  `;
      return columns + shortened(functionText(each), columns.length);
    }),
    '',
  ];
}

function programLines({ programs, instructionCount }: GuestProfile): string[] {
  const line = ({
    program,
    pageDirectory,
    userInstructions,
    kernelInstructions,
  }: ProfiledProgram): string => {
    const columns =
      `${share(userInstructions + kernelInstructions, instructionCount)} ${count(userInstructions)} ` +
      `${count(kernelInstructions)}  ${pageDirectory.toString(16).padStart(8, '0')}  `;
    return columns + shortened(baseName(program), columns.length);
  };
  return [
    `${'share'.padStart(7)} ${'user'.padStart(15)} ${'kernel'.padStart(15)}  page dir  program`,
    ...programs.slice(0, programsShown).map(line),
    ...(programs.length > programsShown ? [`        ${programs.length - programsShown} others`] : []),
  ];
}

function notes({ areModulesKnown, functions, instructionCount }: GuestProfile): string[] {
  const samples = functions.reduce((sum, each) => sum + each.samples, 0);
  const mean = samples === 0 ? 0 : instructionCount / samples;
  return [
    `Instructions are sampled: each of ${countText(samples)} quanta, of ${countText(mean)} instructions on`,
    'average, is charged to the function in which it ended, with what other functions',
    'did in it. Shorter quanta blur less. Accesses of the device are exact.',
    ...(areModulesKnown ? [] : ['The modules are not known: the guest runs a command, or has ended.']),
  ];
}

/** Items in lines, as many as fit, indented. */
function wrapped(items: readonly string[]): string[] {
  const lines: string[] = [];
  for (const item of items) {
    const last = lines.at(-1);
    if (last !== undefined && last.length + item.length + 2 <= lineCharacters)
      lines[lines.length - 1] = `${last}, ${item}`;
    else lines.push(`  ${item}`);
  }
  return lines;
}
