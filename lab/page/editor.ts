/** The editor, by CodeMirror: TypeScript, remarks at their lines, breakpoints, and the programs' current lines. */
import { javascript } from '@codemirror/lang-javascript';
import { HighlightStyle, syntaxHighlighting } from '@codemirror/language';
import { type Diagnostic, lintGutter, setDiagnostics } from '@codemirror/lint';
import { EditorState, RangeSetBuilder, StateEffect, StateField } from '@codemirror/state';
import { Decoration, type DecorationSet, EditorView } from '@codemirror/view';
import { tags } from '@lezer/highlight';
import { basicSetup } from 'codemirror';
import type { ProgramRemark } from '../protocol.ts';
import { type BreakpointActions, breakpointGutter, breakpointLines, showBreakpoints } from './breakpoints.ts';

/** Current lines of the programs, by host. */
const linesShown = StateEffect.define<readonly (number | undefined)[]>();

const programLines = StateField.define<DecorationSet>({
  create: () => Decoration.none,
  update(shown, transaction) {
    let next = shown.map(transaction.changes);
    for (const effect of transaction.effects)
      if (effect.is(linesShown)) next = decorationsOf(effect.value, transaction.state);
    return next;
  },
  provide: (field) => EditorView.decorations.from(field),
});

function decorationsOf(lines: readonly (number | undefined)[], { doc }: EditorState): DecorationSet {
  const builder = new RangeSetBuilder<Decoration>();
  const known = lines.flatMap((line, host) =>
    line === undefined || line > doc.lines ? [] : [{ line, host }],
  );
  for (const line of [...new Set(known.map((each) => each.line))].sort((a, b) => a - b)) {
    const names = known.filter((each) => each.line === line).map(({ host }) => `host ${host}`);
    const { from } = doc.line(line);
    builder.add(
      from,
      from,
      Decoration.line({ class: 'program-line', attributes: { 'data-hosts': names.join(', ') } }),
    );
  }
  return builder.finish();
}

const dress = EditorView.theme({
  '&': {
    fontSize: '13.5px',
    backgroundColor: 'var(--paper)',
    color: 'var(--text)',
    border: '1px solid var(--line)',
    borderRadius: '8px',
  },
  '.cm-gutters': { backgroundColor: 'var(--raised)', color: 'var(--dim)', border: 'none' },
  '.cm-content': { caretColor: 'var(--text)' },
  '.cm-activeLine, .cm-activeLineGutter': {
    backgroundColor: 'color-mix(in srgb, var(--accent) 10%, transparent)',
  },
  '&.cm-focused .cm-selectionBackground, .cm-selectionBackground': {
    backgroundColor: 'color-mix(in srgb, var(--accent) 30%, transparent)',
  },
  '.cm-scroller': { maxHeight: '70vh', fontFamily: 'ui-monospace, monospace' },
});

/** Colours that are readable on the page's background, light and dark; CodeMirror's own suit a light background only. */
const colours = HighlightStyle.define([
  { tag: tags.keyword, color: 'light-dark(#7d1f8a, #d6a4e8)' },
  { tag: [tags.string, tags.special(tags.string), tags.regexp], color: 'light-dark(#1b6b2a, #8fd694)' },
  { tag: [tags.number, tags.bool, tags.null], color: 'light-dark(#9a3412, #fdba74)' },
  { tag: tags.comment, color: 'var(--dim)', fontStyle: 'italic' },
  {
    tag: [tags.definition(tags.variableName), tags.definition(tags.propertyName)],
    color: 'light-dark(#0b4f94, #8ec5ff)',
  },
  { tag: [tags.typeName, tags.className, tags.namespace], color: 'light-dark(#0f5f6a, #7fdbe6)' },
]);

/** Distance between a line scrolled to and the edge of the editor. */
const linesAroundPx = 80;

export interface EditorActions extends BreakpointActions {
  /** Called when the text was edited; its breakpoints have moved with it. */
  edited(text: string, breakpoints: readonly number[]): void;
}

export class Editor {
  readonly #actions: EditorActions;
  #view: EditorView | undefined;
  #scrolledTo = '';

  constructor(actions: EditorActions) {
    this.#actions = actions;
  }

  get text(): string {
    return this.#view?.state.doc.toString() ?? '';
  }

  /** Puts the editor into its place in the page. If the text differs from the editor's, also sets text and breakpoints. */
  show(place: HTMLElement, text: string, breakpoints: readonly number[]): void {
    if (this.#view === undefined) {
      const onUpdate = EditorView.updateListener.of(({ docChanged, state }) => {
        if (docChanged) this.#actions.edited(this.text, breakpointLines(state));
      });
      const label = EditorView.contentAttributes.of({ 'aria-label': 'Program', tabindex: '0' });
      const extensions = [
        breakpointGutter(this.#actions),
        basicSetup,
        javascript({ typescript: true }),
        syntaxHighlighting(colours),
        lintGutter(),
        programLines,
        dress,
        label,
        onUpdate,
      ];
      this.#view = new EditorView({ state: EditorState.create({ doc: text, extensions }) });
    }
    if (this.#view.dom.parentElement !== place) place.replaceChildren(this.#view.dom);
    if (this.text !== text)
      this.#view.dispatch({ changes: { from: 0, to: this.#view.state.doc.length, insert: text } });
    showBreakpoints(this.#view, breakpoints);
  }

  showRemarks(remarks: readonly ProgramRemark[], lines: readonly (number | undefined)[]): void {
    const view = this.#view;
    if (view === undefined) return;
    const { doc } = view.state;
    const diagnostics = remarks.flatMap(({ line, severity, text }): Diagnostic[] => {
      if (line === undefined || line < 1 || line > doc.lines) return [];
      const { from, to } = doc.line(line);
      return [{ from, to, severity, message: text }];
    });
    view.dispatch(setDiagnostics(view.state, diagnostics));
    view.dispatch({ effects: linesShown.of(lines) });
    const [first] = diagnostics;
    const line = lines.find((each) => each !== undefined && each <= doc.lines);
    const place = first?.from ?? (line === undefined ? undefined : doc.line(line).from);
    const shown = first === undefined ? lines.join() : `${first.from} ${first.message}`;
    // Scrolls once and not at each redraw: the reader may have scrolled since.
    if (place !== undefined && shown !== this.#scrolledTo)
      view.dispatch({
        effects: EditorView.scrollIntoView(place, {
          y: first === undefined ? 'nearest' : 'center',
          yMargin: linesAroundPx,
        }),
      });
    this.#scrolledTo = shown;
  }
}
