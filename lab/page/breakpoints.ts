/**
 * Breakpoints of the editor: a gutter that sets and clears them, and lines that move with edits of the text. A line
 * whose whole text is deleted loses its breakpoint.
 */
import {
  type EditorState,
  type Extension,
  RangeSet,
  StateEffect,
  StateField,
  type Transaction,
} from '@codemirror/state';
import { type EditorView, GutterMarker, gutter, keymap, lineNumbers } from '@codemirror/view';

/** Lines that have a breakpoint, by number from 1. */
const linesSet = StateEffect.define<readonly number[]>();

class Breakpoint extends GutterMarker {
  override toDOM(): Node {
    const dot = document.createElement('span');
    dot.className = 'breakpoint';
    dot.textContent = '●';
    return dot;
  }
}

const marker = new Breakpoint();

const breakpoints = StateField.define<RangeSet<Breakpoint>>({
  create: () => RangeSet.empty,
  update(shown, transaction) {
    const set = transaction.effects.find((effect) => effect.is(linesSet));
    if (set !== undefined) return markersOf(set.value as readonly number[], transaction.state);
    return transaction.docChanged ? markersOf(movedLines(shown, transaction), transaction.state) : shown;
  },
});

function markersOf(lines: readonly number[], { doc }: EditorState): RangeSet<Breakpoint> {
  const known = [...new Set(lines)].filter((line) => line <= doc.lines).sort((left, right) => left - right);
  return RangeSet.of(known.map((line) => marker.range(doc.line(line).from)));
}

/** Lines of the breakpoints after an edit. */
function movedLines(
  shown: RangeSet<Breakpoint>,
  { startState, changes, state }: Transaction,
): readonly number[] {
  return positionsOf(shown).flatMap((at) => {
    const { from, to } = startState.doc.lineAt(at);
    if (to > from && changes.touchesRange(from, to) === 'cover') return [];
    return [state.doc.lineAt(changes.mapPos(from, 1)).number];
  });
}

function positionsOf(shown: RangeSet<Breakpoint>): readonly number[] {
  const positions: number[] = [];
  for (const cursor = shown.iter(); cursor.value !== null; cursor.next()) positions.push(cursor.from);
  return positions;
}

/** Lines with a breakpoint, ascending. */
export const breakpointLines = (state: EditorState): readonly number[] =>
  positionsOf(state.field(breakpoints)).map((at) => state.doc.lineAt(at).number);

/** Sets breakpoints at exactly these lines. */
export function showBreakpoints(view: EditorView, lines: readonly number[]): void {
  if (lines.join() !== breakpointLines(view.state).join()) view.dispatch({ effects: linesSet.of(lines) });
}

export interface BreakpointActions {
  /** Called when the reader clicks in a line's gutter or presses F9 in the line. */
  toggle(line: number): void;
  /** Called when the reader presses F8. */
  run(): void;
}

export function breakpointGutter({ toggle, run }: BreakpointActions): Extension {
  const clicked = (view: EditorView, { from }: { readonly from: number }): boolean => {
    toggle(view.state.doc.lineAt(from).number);
    return true;
  };
  const domEventHandlers = { mousedown: clicked };
  return [
    breakpoints,
    gutter({
      class: 'breakpoints',
      markers: ({ state }) => state.field(breakpoints),
      initialSpacer: () => marker,
      domEventHandlers,
    }),
    lineNumbers({ domEventHandlers }),
    keymap.of([
      {
        key: 'F9',
        run: ({ state }) => {
          toggle(state.doc.lineAt(state.selection.main.head).number);
          return true;
        },
      },
      {
        key: 'F8',
        run: () => {
          run();
          return true;
        },
      },
    ]),
  ];
}
