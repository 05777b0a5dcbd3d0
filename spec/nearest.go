package spec

// Nearest returns the word of words that is closest to typed by edit distance,
// or "" when none is near enough to be a slip of the fingers (more than a third
// of the longer word changed, and more than two letters).
func Nearest(typed string, words []string) string {
	best, bestDistance := "", 0
	for _, w := range words {
		d := editDistance(typed, w)
		if best == "" || d < bestDistance {
			best, bestDistance = w, d
		}
	}
	if best == "" || bestDistance > max(2, max(len(typed), len(best))/3) || bestDistance >= len(best) {
		return ""
	}
	return best
}

// editDistance is the Levenshtein distance in bytes. Only the first 64 bytes of
// a word count, so that a hostile file cannot make it expensive.
func editDistance(a, b string) int {
	a, b = a[:min(len(a), 64)], b[:min(len(b), 64)]
	row := make([]int, len(b)+1)
	for j := range row {
		row[j] = j
	}
	for i := 1; i <= len(a); i++ {
		diagonal := row[0]
		row[0] = i
		for j := 1; j <= len(b); j++ {
			cost := 1
			if a[i-1] == b[j-1] {
				cost = 0
			}
			diagonal, row[j] = row[j], min(row[j]+1, row[j-1]+1, diagonal+cost)
		}
	}
	return row[len(b)]
}
