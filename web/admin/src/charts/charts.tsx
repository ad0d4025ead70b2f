/**
 * Live line charts of the last three minutes, drawn by hand as SVG.
 *
 * Invariant: each chart is also described in a sentence, for users who cannot see it.
 */
import type { JSX } from "preact";

import { rate, shortDuration } from "../format";
import { SPAN_MS } from "./chart-history";
import type { ChartHistory, ChartPoint } from "./chart-history";

const WIDTH = 320;
const HEIGHT = 96;
/** Space for the width of the line itself. */
const INSET = 2;

interface ChartLine {
  readonly name: string;
  /** The number of the series' color, 1 to 3. */
  readonly series: number;
  readonly of: (point: ChartPoint) => number | null;
}

interface ChartProps {
  readonly title: string;
  readonly lines: readonly ChartLine[];
  readonly format: (value: number) => string;
  readonly unit: string;
  readonly history: ChartHistory;
  /** The smallest value at which the scale may end. */
  readonly least: number;
}

interface ChartsProps {
  readonly history: ChartHistory;
}

const TRANSACTIONS: readonly ChartLine[] = [
  { name: "Transactions", series: 1, of: (point) => point.transactions },
];
const SYNCS: readonly ChartLine[] = [{ name: "Syncs", series: 1, of: (point) => point.syncs }];
const STORED: readonly ChartLine[] = [{ name: "Messages", series: 1, of: (point) => point.stored }];
const LATENCY: readonly ChartLine[] = [
  { name: "P50", series: 1, of: (point) => point.p50 },
  { name: "P99", series: 2, of: (point) => point.p99 },
];

export function Charts({ history }: ChartsProps): JSX.Element {
  const rates = { history, format: rate, unit: "/s", least: 1 };
  return (
    <section aria-label="Last 3 minutes" class="charts">
      <Chart title="Transactions" lines={TRANSACTIONS} {...rates} />
      <Chart title="Syncs" lines={SYNCS} {...rates} />
      <Chart title="Messages stored" lines={STORED} {...rates} />
      <Chart
        title="Sync duration"
        lines={LATENCY}
        history={history}
        format={shortDuration}
        unit=""
        least={1}
      />
    </section>
  );
}

function Chart({ title, lines, format, unit, history, least }: ChartProps): JSX.Element {
  const { points } = history;
  const last = points.at(-1);
  const now = last?.at ?? 0;
  const values = lines.flatMap((line) => points.map(line.of)).filter((value) => value !== null);
  const highest = Math.max(0, ...values);
  const top = scale(Math.max(highest, least));
  const newest = lines.map((line) => {
    return { ...line, value: last === undefined ? null : line.of(last) };
  });
  const said = newest.map(({ name, value }) =>
    value === null ? `${name} unknown` : `${name} ${format(value)}${unit} now`,
  );
  const label = `${title}: ${said.join(", ")}; at most ${format(highest)}${unit} in 3 minutes`;
  return (
    <figure class="chart">
      <figcaption>
        <span class="chart-title">{title}</span>
        <span class="chart-now">
          {newest.map(({ name, series, value }) => (
            <span key={name} class="reading">
              {lines.length > 1 && (
                <span class="key">
                  <i class={`swatch series-${series}`} aria-hidden="true" />
                  {name}
                </span>
              )}
              <b>{value === null ? "–" : format(value)}</b>
              {value !== null && unit}
            </span>
          ))}
        </span>
      </figcaption>
      <div class="plot">
        <svg
          viewBox={`0 0 ${WIDTH} ${HEIGHT}`}
          preserveAspectRatio="none"
          role="img"
          aria-label={label}
        >
          <path class="grid" d={grid()} />
          {lines.map((line) => (
            <ChartPath key={line.name} line={line} points={points} now={now} top={top} />
          ))}
        </svg>
        <span class="scale" aria-hidden="true">
          {format(top)}
          {unit}
        </span>
      </div>
      <p class="axis" aria-hidden="true">
        <span>3 min ago</span>
        <span>now</span>
      </p>
    </figure>
  );
}

interface ChartPathProps {
  readonly line: ChartLine;
  readonly points: readonly ChartPoint[];
  readonly now: number;
  readonly top: number;
}

/** A line, and the area below it; both have gaps where no value is known. */
function ChartPath({ line, points, now, top }: ChartPathProps): JSX.Element {
  const runs = runsOf(points, line.of).map((run) =>
    run.map(([at, value]) => [x(at, now), y(value, top)] as const),
  );
  const path = runs.map((run) => `M${run.map(([left, down]) => `${left} ${down}`).join("L")}`);
  const area = runs.map((run, place) => {
    const [first, last] = [run[0]?.[0] ?? 0, run.at(-1)?.[0] ?? 0];
    return `${path[place] ?? ""}L${last} ${HEIGHT}L${first} ${HEIGHT}Z`;
  });
  return (
    <g class={`series-${line.series}`}>
      <path class="area" d={area.join("")} />
      <path class="line" d={path.join("")} />
    </g>
  );
}

type KnownPoint = readonly [at: number, value: number];

/**
 * Splits points into runs of known values without a gap; a single point is drawn as a short line.
 */
function runsOf(
  points: readonly ChartPoint[],
  of: ChartLine["of"],
): readonly (readonly KnownPoint[])[] {
  const runs: KnownPoint[][] = [];
  let run: KnownPoint[] = [];
  for (const point of points) {
    const value = of(point);
    if (value !== null) {
      run.push([point.at, value]);
    } else if (run.length > 0) {
      runs.push(run);
      run = [];
    }
  }
  if (run.length > 0) {
    runs.push(run);
  }
  return runs.map((known) => (known.length > 1 ? known : widened(known)));
}

function widened(run: readonly KnownPoint[]): readonly KnownPoint[] {
  return run.flatMap(([at, value]) => [[at - 500, value] as const, [at, value] as const]);
}

function x(at: number, now: number): number {
  return round(WIDTH * (1 - (now - at) / SPAN_MS));
}

function y(value: number, top: number): number {
  return round(HEIGHT - INSET - (value / top) * (HEIGHT - 2 * INSET));
}

function round(value: number): number {
  return Math.round(value * 10) / 10;
}

function grid(): string {
  const rows = [0, 0.5, 1].map((share) => `M0 ${y(share, 1)}H${WIDTH}`);
  const columns = [1 / 3, 2 / 3].map((share) => `M${round(share * WIDTH)} 0V${HEIGHT}`);
  return [...rows, ...columns].join("");
}

/** Returns the first of 1, 2, 5, 10, 20 … that is not below the value. */
function scale(value: number): number {
  const power = 10 ** Math.floor(Math.log10(value));
  const step = [1, 2, 5, 10].find((factor) => factor * power >= value * 0.999) ?? 10;
  return step * power;
}
